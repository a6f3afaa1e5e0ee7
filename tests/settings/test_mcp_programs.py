"""Programs as MCP servers in the settings file."""

from pathlib import Path

import pytest

from backburner.app.machines import build_machines
from backburner.core.errors import BadSetting
from backburner.ports import StdioProgram
from backburner.settings import Settings, load

NOTES = """
[mcp_programs.notes]
command = ["/usr/bin/notes", "--stdio"]
environment = { NOTES_KEY = "canary-key", NOTES_COLOR = "yellow" }
network = true
readable = ["/srv/notes"]
writable = ["/srv/notes/drafts"]
"""


def load_from(folder: Path, text: str) -> Settings:
    file = folder / "backburner.toml"
    file.write_text(text, encoding="utf-8")
    return load(data=str(folder / "data"), config=str(file))


def test_a_program_is_defined_by_its_command_and_its_cage(tmp_path: Path) -> None:
    assert load_from(tmp_path, NOTES).mcp_programs == {
        "notes": StdioProgram(
            command=("/usr/bin/notes", "--stdio"),
            environment={"NOTES_KEY": "canary-key", "NOTES_COLOR": "yellow"},
            network=True,
            readable=("/srv/notes",),
            writable=("/srv/notes/drafts",),
        )
    }


def test_a_program_has_no_network_and_no_folders_unless_they_are_given(tmp_path: Path) -> None:
    program = load_from(tmp_path, '[mcp_programs.a]\ncommand = ["a"]\n').mcp_programs["a"]

    assert program == StdioProgram(command=("a",))
    assert not program.network


def test_variables_that_are_secret_by_their_names_are_kept_out_of_logs(tmp_path: Path) -> None:
    secrets = set(load_from(tmp_path, NOTES).secrets())

    assert "canary-key" in secrets
    assert "yellow" not in secrets


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mcp_programs = 3", "use a table of programs"),
        ("[mcp_programs]\nx = 3", "x is not a table such as"),
        ('[mcp_programs."A b"]\ncommand = ["a"]', "is not a name such as git-server"),
        ("[mcp_programs.x]\nnetwork = true", "x needs a command"),
        ('[mcp_programs.x]\ncommand = "a b"', "x needs a command"),
        ('[mcp_programs.x]\ncommand = ["a"]\nshell = true', "x has 'shell'; the keys are command"),
        ('[mcp_programs.x]\ncommand = ["a"]\nnetwork = "no"', "network that is not true or false"),
        ('[mcp_programs.x]\ncommand = ["a"]\nreadable = ["b"]', "not a list of absolute paths"),
        ('[mcp_programs.x]\ncommand = ["a"]\nwritable = "/b"', "not a list of absolute paths"),
        ('[mcp_programs.x]\ncommand = ["a"]\nenvironment = ["A=b"]', "is not a table"),
        (
            '[mcp_programs.x]\ncommand = ["a"]\nenvironment = { "A-B" = "c" }',
            "'A-B', which is not a variable name",
        ),
        ('[mcp_programs.x]\ncommand = ["a"]\nenvironment = { A = 1 }', "a A that is not text"),
    ],
)
def test_a_program_that_is_not_valid_is_named_with_what_is_wrong(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(BadSetting) as caught:
        load_from(tmp_path, text)

    assert said in str(caught.value)


@pytest.mark.parametrize("key", ["readable", "writable"])
@pytest.mark.parametrize("folder", ["", "data", "data/workspaces"])
def test_a_program_that_could_read_our_data_is_refused(
    tmp_path: Path, key: str, folder: str
) -> None:
    text = f'[mcp_programs.x]\ncommand = ["a"]\n{key} = ["{tmp_path / folder}"]\n'

    with pytest.raises(BadSetting, match=r"The program x of `mcp_programs` could read"):
        build_machines(load_from(tmp_path, text), "backburner")
