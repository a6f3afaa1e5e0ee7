"""What a lasting grant matches: the first words of a command, or one host."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases.examples import examples
from support.cases.policy_cases import RUN_COMMAND, command, fetch, granted, judge

from backburner.core.errors import BadRequest
from backburner.core.question import NO, YES
from backburner.core.tool_policy import (
    ALWAYS_HERE,
    COMMAND_WRAPPERS,
    Allow,
    Ask,
    GrantMatch,
    ToolCall,
    approval_options,
    call_digest,
    widen_grant,
)


def test_a_lasting_grant_for_a_command_does_not_reach_a_tool_held_to_nothing() -> None:
    (lasting,) = granted(ALWAYS_HERE, command("git status"))
    call = ToolCall(replace(RUN_COMMAND, grant_match=GrantMatch.TOOL), {"command": "git status"})

    assert judge(call, lasting) == Ask(call_digest(call))


@pytest.mark.parametrize(
    "line",
    ["git status", "git status --short", "git  status 'my file'", ["git", "status", "-s; x"]],
)
def test_a_lasting_grant_for_a_command_reaches_what_begins_with_its_words(line: object) -> None:
    (grant,) = granted(ALWAYS_HERE, command("git status"))

    assert judge(command(line), grant) == Allow()


@pytest.mark.parametrize(
    "line",
    [
        *("git", "git stash", "git statusx", "gitstatus", "git 'status -s'", "git 'status", ""),
        *("git status; rm -rf /", "git status && ls", "git status | sh", "git status & ls"),
        *("git status $(x)", "git status `x`", "git status ${X}", "git status\nls"),
        *("git status\rls", "git status > f", "git status < f", "git status *", "git status ?"),
        *("git status [a]", "git status ~", "git status {a,b}", "git status # x"),
        *("git status \\; ls", "A=b git status", "'A'=b git status", "./git status"),
        *(["git"], ["git", "status -s"], ["git status"], [], ["git", 1], None, 3, {"git": 1}),
    ],
)
def test_a_lasting_grant_for_a_command_reaches_nothing_else(line: object) -> None:
    (grant,) = granted(ALWAYS_HERE, command("git status"))

    assert judge(command(line), grant) == Ask(call_digest(command(line)))


@examples(300)
@given(st.text("git status;&|<>$`(){}*?[]~#\\\n\r'\"=x", max_size=12))
def test_no_shell_syntax_passes_under_a_granted_prefix(rest: str) -> None:
    (grant,) = granted(ALWAYS_HERE, command("git status"))
    line = "git status" + rest

    allowed = judge(command(line), grant) == Allow()

    assert not allowed or not set(rest) & set(";&|<>$`(){}*?[]~#\\\n\r")


@pytest.mark.parametrize(
    "line",
    [
        *("git status; ls", "echo $HOME", "A=b git status", "echo 'unfinished", "", "cat *.py"),
        *([], ["git", 3], None),
    ],
)
def test_always_here_is_not_offered_for_what_cannot_be_held_to_words(line: object) -> None:
    assert approval_options([command(line)]) == (YES, NO)
    assert approval_options([command("git status"), command(line)]) == (YES, NO)


def test_always_here_never_reaches_what_it_was_not_offered_for() -> None:
    line = command("git status; ls")

    for grant in granted(ALWAYS_HERE, line):
        assert judge(line, grant) == Ask(call_digest(line))
        assert judge(command("git status"), grant) == Ask(call_digest(command("git status")))


@pytest.mark.parametrize(
    "line",
    [
        *("bash run.sh", "sudo ls", "env ls", "xargs rm", "/usr/bin/env ls", "python3 x.py"),
        *("python3.11 x.py", "/opt/bin/python3 x.py", "'ba'sh x", "BASH x", "find . -name x"),
        *(". ./x", "! ls", "node x.js", "awk 1 x", "time ls", "../bin/sh x", "command ls"),
        *(["sh", "-c", "ls"], ["/bin/sh", "-c", "ls"]),
    ],
)
def test_a_command_that_runs_its_arguments_is_only_granted_as_a_whole(
    line: str | list[str],
) -> None:
    (grant,) = granted(ALWAYS_HERE, command(line))
    longer = [*line, "more"] if isinstance(line, list) else f"{line} more"

    assert judge(command(line), grant) == Allow()
    assert judge(command(longer), grant) == Ask(call_digest(command(longer)))


@pytest.mark.parametrize("name", sorted(COMMAND_WRAPPERS))
def test_no_wrapper_is_ever_granted_by_a_prefix(name: str) -> None:
    (grant,) = granted(ALWAYS_HERE, command([name, "one"]))

    assert judge(command([name, "one", "two"]), grant) == Ask(
        call_digest(command([name, "one", "two"]))
    )
    with pytest.raises(BadRequest):
        widen_grant(grant, (name,))


def test_a_grant_for_a_command_can_be_shortened_to_reach_further() -> None:
    (grant,) = granted(ALWAYS_HERE, command("git log --oneline"))

    shorter = widen_grant(grant, ("git", "log"))

    assert judge(command("git log -3"), grant) == Ask(call_digest(command("git log -3")))
    assert judge(command("git log -3"), shorter) == Allow()
    assert shorter == replace(grant, words=("git", "log"))


@pytest.mark.parametrize("words", [(), ("git", "push"), ("git", "log", "-1", "-2"), ("log",)])
def test_a_grant_cannot_be_shortened_to_other_words(words: tuple[str, ...]) -> None:
    (grant,) = granted(ALWAYS_HERE, command("git log -1"))

    with pytest.raises(BadRequest, match="Keep one or more of its first words"):
        widen_grant(grant, words)


def test_only_grants_for_commands_can_be_shortened() -> None:
    for grant in (
        *granted(ALWAYS_HERE, fetch("https://a.org/")),
        *granted(YES, command("git log")),
    ):
        with pytest.raises(BadRequest):
            widen_grant(grant, ("https",))
        with pytest.raises(BadRequest):
            widen_grant(grant, ("git",))


@pytest.mark.parametrize(
    "url",
    [
        *("https://example.com", "https://example.com/other?x=1#y", "HTTPS://EXAMPLE.com/"),
        *("https://example.com:/", "https://example.com/@evil.org"),
    ],
)
def test_a_lasting_grant_for_a_host_reaches_every_page_of_it(url: str) -> None:
    (grant,) = granted(ALWAYS_HERE, fetch("https://example.com/page"))

    assert judge(fetch(url), grant) == Allow()


ODD = [
    *("https://user@example.com/", "https://user:secret@example.com/", "https://@example.com/"),
    *("https://example.com\\@evil.org/", "https://evil.org\\.example.com/", "https://exämple.com/"),
    *("https://example.com:port/", "https://example.com:99999/", "https://[::1/", "https:///x"),
    *("https:example.com", "//example.com/", "example.com", "ftp://example.com/", "file:///etc"),
    *("javascript:alert(1)", "", " ", "https://exa mple.com/", "https://[fe80::1%25eth0]/"),
    *(
        "https://example.com%2eevil.org/",
        "https://\ud800/",
        None,
        3,
        ["https://example.com/"],
        b"x",
    ),
]


@pytest.mark.parametrize(
    "url",
    [
        *("https://example.org/", "https://www.example.com/", "https://example.com.evil.org/"),
        *("http://example.com/", "https://example.com:8443/", "https://example.com:0/"),
        *("https://example.com:443/", "https://example.com./", "https://evil.org/?example.com"),
        *ODD,
    ],
)
def test_a_lasting_grant_for_a_host_reaches_no_other(url: object) -> None:
    (grant,) = granted(ALWAYS_HERE, fetch("https://example.com/page"))

    assert judge(fetch(url), grant) != Allow()


@pytest.mark.parametrize("url", ODD)
def test_always_here_is_not_offered_for_an_odd_address(url: object) -> None:
    assert approval_options([fetch(url)]) == (YES, NO)


@pytest.mark.parametrize("host", ["[::1]", "[2001:DB8::1]", "127.0.0.1", "localhost"])
def test_a_host_may_be_a_number_or_a_local_name(host: str) -> None:
    (grant,) = granted(ALWAYS_HERE, fetch(f"http://{host}:8080/a"))

    assert judge(fetch(f"http://{host}:8080/b"), grant) == Allow()
    assert judge(fetch(f"http://{host}/b"), grant) != Allow()
