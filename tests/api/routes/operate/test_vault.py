"""`/api/vault`: its state and its rotation, for operators only, and never a secret."""

from pathlib import Path

import pytest
from support.requirements import requirement
from support.stage.api_stage import AskAs, Asker
from support.stage.make import MATE, USER
from support.stage.stage import Stage
from support.stage.vaults import CANARY, ONE, given, load, put

from backburner.core.accounts import Role
from backburner.vault.master_keys import MasterKeys
from backburner.vault.vault import SealingVault


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "master_keys"


@pytest.fixture
def vault(stage: Stage, path: Path) -> SealingVault:
    made = SealingVault(MasterKeys(path))
    stage.deps.vault = stage.deps.vault_keys = made
    return made


@pytest.fixture
async def operator(ask_as: AskAs, stage: Stage) -> Asker:
    stage.user(MATE)
    return await ask_as(USER, role=Role.OPERATOR)


async def test_an_operator_sees_which_master_key_is_in_use(
    operator: Asker, stage: Stage, vault: SealingVault, path: Path
) -> None:
    assert (await operator.get("/api/vault"))["current"] == ""
    put(stage.database, vault, MATE)

    found = await operator.get("/api/vault")

    (key,) = MasterKeys(path).all()
    assert found == {
        "source": str(path),
        "master_keys": [key.id],
        "current": key.id,
        "users": 1,
        "locked": {},
        "problem": "",
        "hint": "",
    }


async def test_an_operator_rotates_the_master_key(
    operator: Asker, stage: Stage, vault: SealingVault, path: Path
) -> None:
    refused = await operator("POST", "/api/vault/rotate", {})
    assert refused.status_code == 409
    put(stage.database, vault, MATE)
    (before,) = MasterKeys(path).all()

    rotated = await operator.do("POST", "/api/vault/rotate", {})

    (after,) = MasterKeys(path).all()
    assert (rotated["new"], rotated["removed"]) == (after.id, [before.id])
    assert not rotated["waits_for_hosts"]
    assert rotated["status"]["current"] == after.id != before.id
    assert load(stage.database, vault, MATE) == CANARY
    kept = await operator.do("POST", "/api/vault/rotate", {"keep_old": True})
    assert (kept["removed"], kept["status"]["master_keys"]) == ([], [kept["new"], after.id])
    acts = (await operator.get("/api/audit"))["items"]
    assert [(act["act"], act["detail"]) for act in acts[:2]] == [
        ("master_key_rotated", kept["new"]),
        ("master_key_rotated", after.id),
    ]


async def test_a_locked_vault_says_what_is_missing_and_can_be_reset(
    operator: Asker, stage: Stage, vault: SealingVault
) -> None:
    put(stage.database, given(ONE), MATE)

    found = await operator.get("/api/vault")
    assert (found["current"], found["locked"]) == ("one", {"one": 2})
    refused = await operator("POST", "/api/vault/rotate", {})
    assert refused.status_code == 503
    assert "master key one" in refused.json()["detail"]

    assert await operator.do("POST", "/api/vault/reset") == {"forgotten": 2}
    assert load(stage.database, vault, MATE) is None
    assert (await operator.get("/api/audit"))["items"][0]["act"] == "secrets_forgotten"
    put(stage.database, vault, MATE)
    assert await operator.do("POST", "/api/vault/reset") == {"forgotten": 0}
    assert load(stage.database, vault, MATE) == CANARY


@requirement("Z-mine")
async def test_an_export_has_no_secret_and_no_key(ask_as: AskAs, stage: Stage) -> None:
    asker = await ask_as(MATE)
    put(stage.database, given(ONE), MATE, "name-of-a-secret")

    exported = await asker("GET", "/api/export")

    assert exported.status_code == 200
    assert "data_keys" not in exported.json()
    for hidden in (CANARY.decode(), "name-of-a-secret", "secrets"):
        assert hidden not in exported.text
