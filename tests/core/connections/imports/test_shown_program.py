"""What a user is shown of an imported command, and what such a command may not be."""

import pytest
from support.requirements import requirement

from backburner.core.connections.imports.shown_program import (
    check_command,
    check_environment,
    check_nothing_shared,
    check_out_of_reach,
    find_paths,
    show_command,
)
from backburner.core.errors import BadRequest
from backburner.core.validation import hidden_characters


@requirement("Z-import")
@pytest.mark.parametrize(
    "word",
    [
        *("a\x1b[2Kb", "a\rb", "a\nb", "a\tb", "a\u202eb", "a\u200bb", "\x7f", "a\u2028b", "\0"),
        *("--mode=safe\ufe00\U000e0140", "\u3164", "a\u2800b"),
    ],
)
def test_a_command_with_characters_that_cannot_be_seen_is_refused(word: str) -> None:
    with pytest.raises(BadRequest, match="cannot be seen") as refused:
        check_command(["/bin/x", word])
    assert word not in refused.value.message
    assert refused.value.message.isprintable()
    assert not hidden_characters(refused.value.message)


def test_every_word_stands_in_a_line_of_its_own() -> None:
    shown = show_command(["npx", "--yes", "a@1.0.0", " " * 300 + "; rm -rf /", "it's", ""])
    assert shown[:3] == ["    npx", "    --yes", "    a@1.0.0"]
    assert shown[3] == "    '" + " " * 300 + "; rm -rf /'"
    assert shown[5] == "    ''"


@requirement("Z-import")
@pytest.mark.parametrize(
    "words",
    [
        ["--api-key=abc"],
        ["--access-token", "abc"],
        ["-password=x"],
        ["--PAT=x"],
        ["postgres://ada:secret@db.example/x"],
        ["--url=https://u:p@a.example/"],
    ],
)
def test_a_secret_in_the_arguments_is_refused(words: list[str]) -> None:
    with pytest.raises(BadRequest, match="read by others") as refused:
        check_command(["/bin/x", *words])
    assert "abc" not in str(refused.value)
    assert "secret@" not in str(refused.value)


@pytest.mark.parametrize(
    "word", ["--token-file=/run/token", "--key=", "--format", "postgres://db.example/x"]
)
def test_arguments_without_a_secret_may_stay(word: str) -> None:
    check_command(["/bin/x", word])


@pytest.mark.parametrize("program", ["./x", "bin/x", "../x", " "])
def test_a_program_from_an_unknown_folder_is_refused(program: str) -> None:
    with pytest.raises(BadRequest, match="path from"):
        check_command([program])


def test_a_command_that_nobody_would_read_is_refused() -> None:
    with pytest.raises(BadRequest, match="too long"):
        check_command(["/bin/x"] * 101)
    with pytest.raises(BadRequest, match="too long"):
        check_command(["/bin/x", "a" * 10_000])


@requirement("Z-import")
@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "NODE_OPTIONS", "PYTHONPATH", "PATH", "HOME", "BASH_ENV", "DYLD_X"),
        *(
            "npm_config_registry",
            "UV_INDEX_URL",
            "PIP_INDEX_URL",
            "GIT_SSH_COMMAND",
            "_JAVA_OPTIONS",
        ),
        *("JAVA_OPTS", "SERVER_OPTS", "ERL_AFLAGS", "DOTNET_STARTUP_HOOKS", "OPENSSL_CONF"),
        *("PHPRC", "PHP_INI_SCAN_DIR", "XDG_CONFIG_HOME", "GEM_HOME", "LUA_INIT_5_4", "R_PROFILE"),
        *("NODE_REPL_EXTERNAL_MODULE", "GLIBC_TUNABLES", "SHELLOPTS", "PS4", "EDITOR"),
    ],
)
def test_variables_that_change_which_code_runs_are_refused(name: str) -> None:
    with pytest.raises(BadRequest, match="change which code runs"):
        check_environment({name: "x"})


def test_other_variables_may_be_given() -> None:
    names = "API_KEY PYTHONUNBUFFERED DOTNET_ENVIRONMENT NODE_ENV NODE_URL HTTPS_PROXY TZ".split()
    check_environment(dict.fromkeys(names, "x"))


def test_what_is_no_variable_is_refused() -> None:
    with pytest.raises(BadRequest, match="not the name of a variable"):
        check_environment({"A=B": "x"})
    with pytest.raises(BadRequest, match="too many"):
        check_environment({f"A{number}": "x" for number in range(101)})


def test_paths_are_found_in_options_too() -> None:
    command = ["/usr/bin/node", "/srv/x.js", "--config=/etc/x", "--a=b", "relative/x"]
    assert list(find_paths(command)) == ["/usr/bin/node", "/srv/x.js", "/etc/x"]


@requirement("Z-import")
def test_what_agents_can_write_is_out_of_the_question() -> None:
    reachable = {"/srv/app": "the folder /srv/app"}
    check_out_of_reach(["/srv/application/x", "/srv"], reachable)
    for path in ("/srv/app", "/srv/app/tools/x.js"):
        with pytest.raises(BadRequest, match="agents can change it"):
            check_out_of_reach(["/usr/bin/node", path], reachable)


@requirement("Z-import")
def test_what_a_program_reads_has_nothing_of_agents_in_it_or_around_it() -> None:
    reachable = {"/srv/mono/app": "the folder /srv/mono/app"}
    check_nothing_shared(["/srv/mono/application", "/srv/other"], reachable)
    for place in ("/srv/mono/app", "/srv/mono/app/lib", "/srv/mono", "/srv"):
        with pytest.raises(BadRequest, match=f"may read {place} could load"):
            check_nothing_shared([place], reachable)
