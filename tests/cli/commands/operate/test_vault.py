"""`backburner vault`, and what doctor, a start and a restore say about its keys."""

import base64
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.programs.programs import Ended, Start
from support.stage.make import MATE, USER
from support.stage.vaults import CANARY, ONE, TWO, add_users, given, load, put

from backburner.app.clock import Clock
from backburner.cli.command_name import COMMAND_VARIABLE
from backburner.settings import take_master_keys
from backburner.store.db import Database
from backburner.store.lifecycle.opening import open_database
from backburner.vault.master_keys import MasterKey, MasterKeys
from backburner.vault.vault import SealingVault

Call = Callable[..., Ended]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("BACKBURNER_DATA", str(folder))
    monkeypatch.setenv("BACKBURNER_PORT", "0")
    return folder


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    monkeypatch.setenv("BACKBURNER_MASTER_KEYS", "")
    take_master_keys()


def line(key: MasterKey) -> str:
    return f"{key.id}:{base64.b64encode(key.secret).decode()}"


def open_file(data: Path) -> Database:
    return open_database(f"sqlite:///{data / 'backburner.sqlite3'}", Clock().read)


def vault_of(data: Path) -> SealingVault:
    return SealingVault(MasterKeys(data / "master_keys"))


def seal(data: Path, vault: SealingVault) -> None:
    with closing(open_file(data)) as database:
        add_users(database, USER, MATE)
        for owner in (None, USER, MATE):
            put(database, vault, owner)


def assert_opens(data: Path, vault: SealingVault) -> None:
    with closing(open_file(data)) as database:
        assert [load(database, vault, owner) for owner in (None, USER, MATE)] == [CANARY] * 3


def test_the_status_is_that_of_the_database_and_changes_nothing(call: Call, data: Path) -> None:
    assert call("vault", "status").code == 3
    with closing(open_file(data)):
        pass
    fresh = call("vault", "status")
    assert (fresh.code, (data / "master_keys").exists()) == (0, False)
    assert "nothing is sealed yet" in fresh.out[1]

    seal(data, vault_of(data))
    (key,) = MasterKeys(data / "master_keys").all()

    assert call("vault", "status").out == [
        f"Master keys         {data / 'master_keys'} ({key.id})",
        f"In use              {key.id}",
        "Users with secrets  2",
    ]
    shown = json.loads("\n".join(call("vault", "status", "--json").out))
    assert (shown["current"], shown["users"], shown["locked"]) == (key.id, 2, {})
    (finding,) = [one for one in call("doctor", "--offline").out if one[5:].startswith("vault")]
    assert finding.startswith("[ok]")
    assert key.id in finding


def test_a_rotation_works_without_a_server_and_through_a_running_one(
    call: Call, start: Start, data: Path
) -> None:
    seal(data, vault_of(data))
    (first,) = MasterKeys(data / "master_keys").all()

    assert "Backups made before need it." in call("vault", "rotate").err[0]
    assert MasterKeys(data / "master_keys").all() == (first,)
    assert call("vault", "rotate", "--yes").code == 0

    (second,) = MasterKeys(data / "master_keys").all()
    assert_opens(data, vault_of(data))
    with closing(open_file(data)) as database:
        database.run(lambda tx: tx.personal_data.erase(MATE))
        database.run(lambda tx: tx.personal_data.erase(USER))
    running = start("up")
    running.wait_until_ready()
    shown = call("vault", "status")
    rotated = call("vault", "rotate", "--yes")
    checked = call("doctor", "--offline")
    assert running.end(signal.SIGTERM).code == 0

    assert second.id in shown.out[1]
    assert rotated.code == 0, rotated.err
    (third,) = MasterKeys(data / "master_keys").all()
    assert rotated.out[0].startswith(f"The master key {third.id} is in use.")
    assert f"Deleted from {data / 'master_keys'}: {second.id}." in rotated.out[0]
    assert len({first, second, third}) == 3
    assert any(third.id in one for one in checked.out)
    with closing(open_file(data)) as database:
        assert load(database, vault_of(data), None) == CANARY


def test_with_several_machines_the_new_key_is_used_by_the_second_call(
    call: Call, data: Path, migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATABASE_URL", migrated_postgres_url)
    with closing(open_database(migrated_postgres_url, Clock().read)) as database:
        put(database, vault_of(data), None)

    first = call("vault", "rotate", "--yes")
    new, old = MasterKeys(data / "master_keys").all()
    second = call("vault", "rotate", "--yes")

    assert "Copy the file to all other machines" in first.out[0]
    assert second.out[0].startswith(f"The master key {new.id} is in use.")
    assert MasterKeys(data / "master_keys").all() == (new,)
    assert old.id in second.out[0]


def test_keys_of_the_variable_are_rotated_to_the_first(
    call: Call, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(data, given(ONE))
    monkeypatch.setenv("BACKBURNER_MASTER_KEYS", f"{line(TWO)},{line(ONE)}")

    rotated = call("vault", "rotate", "--yes")

    assert rotated.out == ["The master key two is in use."]
    assert call("vault", "status").out[0] == (
        "Master keys         BACKBURNER_MASTER_KEYS (two, one)"
    )
    assert_opens(data, given(TWO))
    monkeypatch.setenv("BACKBURNER_MASTER_KEYS", "one:broken")
    refused = call("vault", "status")
    assert refused.code == 2
    assert "BACKBURNER_MASTER_KEYS has a master key that is not" in refused.err[0]
    assert "broken" not in refused.err[0]


def test_without_its_master_key_a_server_starts_and_says_what_is_missing(
    call: Call, start: Start, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, "bb")
    seal(data, given(ONE))

    running = start("up")
    running.wait_until_ready()
    ended = running.end(signal.SIGTERM)
    checked = call("doctor", "--offline")
    shown = call("vault", "status")

    assert ended.code == 0
    (warning,) = [one for one in ended.err if "vault.locked" in one]
    assert "master key one" in warning
    assert not (data / "master_keys").exists()
    assert checked.code == shown.code == 1
    (finding,) = [one for one in checked.out if one[5:].startswith("vault")]
    assert finding.startswith("[!!]")
    assert "3 keys are locked by the master key one" in finding
    assert "3 keys are locked by the master key one" in shown.out[-1]
    assert "`bb vault reset`" in shown.out[-1]


def test_a_key_file_that_others_can_read_is_a_problem(call: Call, data: Path) -> None:
    seal(data, vault_of(data))
    (data / "master_keys").chmod(0o644)

    checked = call("doctor", "--offline")

    assert checked.code == 1
    (finding,) = [one for one in checked.out if one[5:].startswith("vault")]
    assert f"Run: chmod 600 {data / 'master_keys'}" in finding


def test_a_start_with_its_master_key_says_nothing_about_it(start: Start, data: Path) -> None:
    seal(data, given(ONE))

    running = start("up", env={**os.environ, "BACKBURNER_MASTER_KEYS": line(ONE)})
    running.wait_until_ready()
    ended = running.end(signal.SIGTERM)

    assert ended.code == 0
    assert not [one for one in ended.err if "vault" in one]
    assert line(ONE)[4:] not in (data / "log" / "server.log").read_text()


def test_secrets_whose_key_is_lost_are_deleted_on_request_only(call: Call, data: Path) -> None:
    seal(data, given(ONE))

    asked = call("vault", "reset")
    assert asked.code == 2
    assert "no terminal to ask" in asked.err[0]
    assert_opens(data, given(ONE))

    assert call("vault", "reset", "--yes").out == ["Deleted: the secrets under 3 keys."]
    assert call("vault", "reset", "--yes").out == ["Nothing is locked."]
    with closing(open_file(data)) as database:
        put(database, vault_of(data), USER)
        assert load(database, vault_of(data), USER) == CANARY


def test_a_backup_without_its_key_is_restored_with_a_warning(
    call: Call, data: Path, tmp_path: Path
) -> None:
    seal(data, vault_of(data))
    keys = data / "master_keys"
    (key,) = MasterKeys(keys).all()
    file = tmp_path / "backup"
    assert call("db", "backup", str(file)).code == 0
    content = file.read_bytes()
    assert CANARY not in content
    assert base64.b64encode(key.secret) not in content
    assert key.secret not in content
    here = call("db", "restore", str(file))
    elsewhere = keys.rename(tmp_path / "keys")

    away = call("db", "restore", str(file))

    assert (here.code, here.err, away.code) == (0, [], 0)
    assert f"sealed with the master key {key.id}, which is not in {keys}" in away.err[0]
    assert f"add its line to {keys}" in away.err[1]
    assert not keys.exists()
    elsewhere.rename(keys)
    assert_opens(data, vault_of(data))
