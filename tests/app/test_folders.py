"""Folders of the settings at the start of a program, and the places on this machine to keep out."""

import os
from pathlib import Path
from typing import Any

import pytest

from backburner.app.folders import find_forbidden_places, folder_rules
from backburner.core.errors import BadRequest, BadSetting
from backburner.core.work.folders import check_place
from backburner.settings.loading import load


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = Path(os.path.realpath(tmp_path)) / "people" / "ada"
    (home / "data").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.mark.parametrize(
    ("templates", "reason"),
    [
        (["/{login}"], "a folder of the system|a home folder"),
        (["/etc/{login}"], "a folder of the system"),
        (["{people}/ada/data/{login}"], "lies in Backburner's data folder"),
        (["{people}/ada/srv/{login}", "{people}/ada/srv/{login}-x"], "accounts can meet"),
        (["{people}/ada/srv/{login}", "{people}/ada/srv/{login}/app"], "accounts can meet"),
        (["{people}/ada/link/{login}"], r"/link leads to .*/srv\. Write .*/srv/\{login\}\."),
    ],
)
def test_a_program_does_not_start_with_folders_that_accounts_must_not_have(
    home: Path, templates: list[str], reason: str
) -> None:
    (home / "srv").mkdir()
    (home / "link").symlink_to(home / "srv")
    given = [template.replace("{people}", str(home.parent)) for template in templates]

    with pytest.raises(BadSetting, match=reason):
        folder_rules(load(data=home / "data", folders=given))


def test_a_program_starts_with_folders_for_agents(home: Path) -> None:
    templates = (f"{home}/srv/{{login}}", f"{home}/code/of-{{login}}")

    assert folder_rules(load(data=home / "data", folders=templates)).templates == templates


async def test_agents_write_where_the_links_of_private_workspaces_lead(home: Path) -> None:
    (home / "data" / "workspaces" / "u_1").mkdir(parents=True)
    (home / "disk").mkdir()
    (home / "data" / "workspaces" / "u_2").symlink_to(home / "disk")
    (home / "elsewhere").symlink_to(home / "data")

    assert set(await folder_rules(load(data=home / "elsewhere")).of_agents()) == {
        f"{home}/data",
        f"{home}/data/workspaces",
        f"{home}/data/workspaces/u_1",
        f"{home}/disk",
    }


@pytest.mark.parametrize(
    ("variables", "options", "file"),
    [
        ({"KUBECONFIG": "{base}/kube/one:{base}/kube/two"}, {}, "kube/two"),
        ({"AWS_SHARED_CREDENTIALS_FILE": "{base}/aws/keys"}, {}, "aws/keys"),
        ({"GH_CONFIG_DIR": "{base}/gh"}, {}, "gh"),
        ({"XDG_CONFIG_HOME": "{base}/settings"}, {}, "settings/gh"),
        ({"BACKBURNER_DATABASE_URL_FILE": "{base}/secrets/url"}, {}, "secrets/url"),
        ({}, {"database_url": "sqlite:///{base}/db/b.sqlite3"}, "db/b.sqlite3"),
        ({}, {"config": "{base}/etc/backburner.toml"}, "etc/backburner.toml"),
        ({}, {"tls_certificate": "{base}/tls/c", "tls_key": "{base}/tls/k"}, "tls/k"),
    ],
)
def test_places_of_sign_ins_settings_and_keys_are_forbidden_wherever_they_are(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    options: dict[str, Any],
    file: str,
) -> None:
    base = home / "elsewhere"
    (base / file).parent.mkdir(parents=True)
    (base / file).write_text("")
    if "DATABASE_URL_FILE" in str(variables):
        (base / file).write_text("postgresql://x/y")
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("{base}", str(base)))
    given = {name: value.replace("{base}", str(base)) for name, value in options.items()}
    forbidden = find_forbidden_places(load(data=home / "data", **given))

    for path in (base, (base / file).parent):
        with pytest.raises(BadRequest, match=r"agents must not see|lies in"):
            check_place(str(path), forbidden)
    check_place(str(base / "project"), forbidden)
