"""The parts that do the work: whether there is memory for them, and what commands may read."""

from pathlib import Path
from typing import Any

import pytest
from support.requirements import requirement

from backburner.app.machines import (
    CLAUDE_MEMORY_BYTES,
    RESERVED_MEMORY_BYTES,
    build_machines,
    build_sign_ins,
    has_memory,
)
from backburner.core.errors import BadSetting
from backburner.settings.loading import load


@pytest.mark.parametrize("starting", [0, 1, 4])
def test_starting_processes_count_with_their_full_memory(starting: int) -> None:
    enough = (starting + 1) * CLAUDE_MEMORY_BYTES + RESERVED_MEMORY_BYTES

    assert has_memory(enough, starting=starting)
    assert not has_memory(enough - 1, starting=starting)


def test_unknown_free_memory_counts_as_enough() -> None:
    assert has_memory(None, starting=9)


@pytest.mark.parametrize("name", ["data", "config", "tls_key", "workspace"])
def test_settings_under_which_commands_could_read_secrets_are_refused(
    tmp_path: Path, name: str
) -> None:
    shown, hidden = tmp_path / "shown", tmp_path / "hidden"
    for folder in (shown, hidden):
        folder.mkdir()
    for file in ("backburner.toml", "key.pem", "certificate.pem"):
        (shown / file).touch()
    options: dict[str, Any] = {
        "data": {"data": shown},
        "config": {"config": shown / "backburner.toml"},
        "tls_key": {"tls_certificate": shown / "certificate.pem", "tls_key": shown / "key.pem"},
        "workspace": {"workspace": shown / "workspaces"},
    }[name]

    with pytest.raises(BadSetting, match="Commands of agents could read"):
        build_machines(load(**{"data": hidden, "readable": [shown], **options}), "backburner")


@requirement("B-signed-in")
@pytest.mark.parametrize(
    ("options", "has_sign_ins"),
    [
        ({}, True),
        ({"commands": "off"}, False),
        ({"commands": "unconfined"}, False),
        ({"database_url": "postgresql://x/y"}, False),
    ],
)
def test_sign_ins_are_used_with_sqlite_and_confined_commands_only(
    tmp_path: Path, options: dict[str, str], *, has_sign_ins: bool
) -> None:
    settings = load(data=tmp_path, **options)

    assert (build_sign_ins(settings) is not None) is has_sign_ins
    assert build_machines(settings, "backburner").has_sign_ins is has_sign_ins
