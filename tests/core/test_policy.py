"""Which tool calls are made, asked about or denied, and how far each kind of yes reaches."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from backburner.core.conversation import Kind
from backburner.core.errors import BadRequest
from backburner.core.policy import (
    ALWAYS,
    MOST_ARGUMENT_BYTES,
    OURS,
    SINGLE_USE_LASTS,
    WRAPPERS,
    Allow,
    Ask,
    Call,
    Decision,
    Deny,
    Grant,
    Narrowing,
    Tool,
    approval_binding,
    approval_options,
    decide,
    digest,
    grants_given,
    inherits_grants,
    shorten,
)
from backburner.core.question import NO, YES, Purpose, Question, QuestionType
from backburner.core.values import canonical
from backburner.testing import make
from backburner.testing.make import NOON

MAIL = Tool(server="mail", name="send", definition="d1")
RUN_COMMAND = Tool(
    server="backburner", name="run_command", definition="d2", narrowing=Narrowing.COMMAND
)
FETCH_URL = Tool(server="backburner", name="fetch_url", definition="d3", narrowing=Narrowing.HOST)
READ = Tool(server="backburner", name="read_file", definition="d4", free=True)
SEND = Call(MAIL, {"to": "ann@example.com", "copies": 2})

some_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text("aé\\\"', ", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=6,
)
some_text = st.text("ab,\"'[]é\n", max_size=6)
arguments = st.dictionaries(some_text, some_json, max_size=3)


def command(line: object) -> Call:
    return Call(RUN_COMMAND, {"command": line})


def fetch(url: object) -> Call:
    return Call(FETCH_URL, {"url": url})


def asked_about(*calls: Call) -> Question:
    return make.question(
        purpose=Purpose.APPROVAL,
        type=QuestionType.CHOICE,
        options=approval_options(calls),
        binds_to=approval_binding(calls),
    )


def granted(answer: str, *calls: Call) -> tuple[Grant, ...]:
    return grants_given(asked_about(*calls), answer, now=NOON)


def judge(call: Call, *grants: Grant) -> Decision:
    return decide(call, grants, scope=None, in_doubt=False, now=NOON)


def test_a_call_that_nobody_has_agreed_to_is_asked_about() -> None:
    assert judge(SEND) == Ask(digest(SEND))


def test_a_free_tool_is_called_without_asking() -> None:
    assert judge(Call(READ, {"path": "x"})) == Allow()


def test_a_yes_is_for_one_call_and_is_used_up_by_it() -> None:
    (grant,) = granted(YES, SEND)

    assert judge(SEND, grant) == Allow(uses=grant.id)
    assert grant.expires_at == NOON + SINGLE_USE_LASTS


def test_a_no_leaves_nothing_behind() -> None:
    assert granted(NO, SEND) == ()


def test_what_is_neither_yes_nor_always_leaves_nothing_behind() -> None:
    assert granted("perhaps", SEND) == ()


def test_a_yes_that_was_not_used_in_time_is_void() -> None:
    (grant,) = granted(YES, SEND)

    just_before = decide(
        SEND,
        [grant],
        scope=None,
        in_doubt=False,
        now=NOON + SINGLE_USE_LASTS - timedelta(seconds=1),
    )
    too_late = decide(SEND, [grant], scope=None, in_doubt=False, now=NOON + SINGLE_USE_LASTS)

    assert just_before == Allow(uses=grant.id)
    assert too_late == Ask(digest(SEND))


def test_two_calls_asked_about_together_get_a_grant_each() -> None:
    other = Call(MAIL, {"to": "bob@example.com"})

    first, second = granted(YES, SEND, other)

    assert first.id != second.id
    assert judge(SEND, first, second) == Allow(uses=first.id)
    assert judge(other, first, second) == Allow(uses=second.id)


def test_the_same_call_twice_uses_up_one_grant_at_a_time() -> None:
    first, second = granted(YES, SEND, SEND)

    assert judge(SEND, first, second) == Allow(uses=first.id)
    assert judge(SEND, second) == Allow(uses=second.id)


def test_always_here_reaches_every_call_of_the_tool_and_is_not_used_up() -> None:
    (lasting,) = granted(ALWAYS, SEND)
    (single,) = granted(YES, SEND)

    assert judge(Call(MAIL, {"to": "anyone"}), lasting) == Allow()
    assert judge(SEND, single, lasting) == Allow()
    assert lasting.expires_at is None


@pytest.mark.parametrize(
    "other",
    [
        replace(MAIL, definition="d9"),
        replace(MAIL, server="mail2"),
        replace(MAIL, name="send_all"),
        replace(MAIL, narrowing=Narrowing.COMMAND),
    ],
)
def test_always_here_ends_where_the_tool_is_no_longer_the_same(other: Tool) -> None:
    (lasting,) = granted(ALWAYS, SEND)
    call = Call(other, {**SEND.arguments, "command": "ls"})

    assert judge(call, lasting) == Ask(digest(call))


def test_a_lasting_grant_for_a_command_does_not_reach_a_tool_held_to_nothing() -> None:
    (lasting,) = granted(ALWAYS, command("git status"))
    call = Call(replace(RUN_COMMAND, narrowing=Narrowing.TOOL), {"command": "git status"})

    assert judge(call, lasting) == Ask(digest(call))


@examples(200)
@given(some_text, some_text, some_text, arguments, st.data())
def test_any_change_to_a_call_asks_again(
    server: str, name: str, definition: str, given_arguments: dict[str, Any], data: st.DataObject
) -> None:
    tool = Tool(server=server, name=name, definition=definition)
    call = Call(tool, given_arguments)
    (grant,) = granted(YES, call)
    what = data.draw(st.sampled_from(["server", "name", "definition", "arguments"]))
    if what == "arguments":
        changed = Call(tool, data.draw(arguments))
        assume(canonical(changed.arguments) != canonical(call.arguments))
    else:
        text = data.draw(some_text)
        assume(text != getattr(tool, what))
        changes: dict[str, Any] = {what: text}
        changed = Call(replace(tool, **changes), given_arguments)

    assert judge(call, grant) == Allow(uses=grant.id)
    assert judge(changed, grant) == Ask(digest(changed))
    assert digest(changed) != digest(call)


def test_where_one_part_of_a_call_ends_and_the_next_begins_makes_a_difference() -> None:
    one = Tool(server="ab", name="c", definition="d")
    other = Tool(server="a", name="bc", definition="d")

    assert digest(Call(one, {})) != digest(Call(other, {}))


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "ann@example.com", "copies": 2.0},
        {"to": "ann@example.com", "copies": "2"},
        {"to": "ann@example.com", "copies": True},
        {"to": "ann@example.com ", "copies": 2},
        {"to": ["ann@example.com"], "copies": 2},
        {"to": "Ann@example.com", "copies": 2},
        {"to": "ann@example.com", "copies": 2, "bcc": None},
        {"to": "ann@example.com"},
    ],
)
def test_arguments_that_only_look_the_same_ask_again(arguments: dict[str, Any]) -> None:
    (grant,) = granted(YES, SEND)

    assert isinstance(judge(Call(MAIL, arguments), grant), Ask)


def test_the_order_of_the_arguments_makes_no_difference() -> None:
    (grant,) = granted(YES, SEND)
    turned = {name: SEND.arguments[name] for name in reversed(list(SEND.arguments))}

    assert judge(Call(MAIL, turned), grant) == Allow(uses=grant.id)


def test_a_tool_outside_the_scope_of_the_work_is_denied_whatever_was_granted() -> None:
    grants = granted(ALWAYS, SEND)

    out = decide(SEND, grants, scope=("read_file", "search"), in_doubt=False, now=NOON)
    within = decide(SEND, grants, scope=("mail/send",), in_doubt=False, now=NOON)

    assert out == Deny("mail/send is not among the tools of this work: read_file, search.")
    assert within == Allow()


def test_a_scope_names_our_tools_and_does_not_let_in_others_of_the_same_name() -> None:
    ours = Call(replace(READ, server=OURS), {})
    theirs = Call(replace(READ, server="mail"), {})
    scope = (READ.name,)

    assert decide(ours, [], scope=scope, in_doubt=False, now=NOON) == Allow()
    assert isinstance(decide(theirs, [], scope=scope, in_doubt=False, now=NOON), Deny)


def test_a_scope_denies_even_free_tools() -> None:
    denied = decide(Call(READ, {}), [], scope=(), in_doubt=False, now=NOON)

    assert isinstance(denied, Deny)


@pytest.mark.parametrize("call", [SEND, Call(READ, {"path": "x"})])
def test_a_tool_in_doubt_is_denied_even_if_free_or_granted(call: Call) -> None:
    denied = decide(call, granted(ALWAYS, call), scope=None, in_doubt=True, now=NOON)

    assert isinstance(denied, Deny)
    assert "may or may not have happened" in denied.reason


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"text": "\ud800"}, "no text"),
        ({"text": "a\0b"}, "no text"),
        ({"number": float("nan")}, "not finite"),
        ({"text": "x" * MOST_ARGUMENT_BYTES}, "the limit is"),
    ],
)
def test_a_call_that_cannot_be_written_down_is_denied(
    arguments: dict[str, Any], fault: str
) -> None:
    for tool in (MAIL, READ):
        denied = judge(Call(tool, arguments))

        assert isinstance(denied, Deny)
        assert fault in denied.reason


@pytest.mark.parametrize("kind", Kind)
def test_only_jobs_work_under_the_grants_of_their_parent(kind: Kind) -> None:
    assert inherits_grants(kind) == (kind is Kind.JOB)


@pytest.mark.parametrize(
    "line",
    ["git status", "git status --short", "git  status 'my file'", ["git", "status", "-s; x"]],
)
def test_a_lasting_grant_for_a_command_reaches_what_begins_with_its_words(line: object) -> None:
    (grant,) = granted(ALWAYS, command("git status"))

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
    (grant,) = granted(ALWAYS, command("git status"))

    assert judge(command(line), grant) == Ask(digest(command(line)))


@examples(300)
@given(st.text("git status;&|<>$`(){}*?[]~#\\\n\r'\"=x", max_size=12))
def test_no_sign_of_the_shell_passes_under_a_prefix(rest: str) -> None:
    (grant,) = granted(ALWAYS, command("git status"))
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

    for grant in granted(ALWAYS, line):
        assert judge(line, grant) == Ask(digest(line))
        assert judge(command("git status"), grant) == Ask(digest(command("git status")))


@pytest.mark.parametrize(
    "line",
    [
        *("bash run.sh", "sudo ls", "env ls", "xargs rm", "/usr/bin/env ls", "python3 x.py"),
        *("python3.11 x.py", "/opt/bin/python3 x.py", "'ba'sh x", "BASH x", "find . -name x"),
        *(". ./x", "! ls", "node x.js", "awk 1 x", "time ls", "../bin/sh x", "command ls"),
        *(["sh", "-c", "ls"], ["/bin/sh", "-c", "ls"]),
    ],
)
def test_what_runs_its_arguments_is_only_ever_granted_whole(line: str | list[str]) -> None:
    (grant,) = granted(ALWAYS, command(line))
    longer = [*line, "more"] if isinstance(line, list) else f"{line} more"

    assert judge(command(line), grant) == Allow()
    assert judge(command(longer), grant) == Ask(digest(command(longer)))


@pytest.mark.parametrize("name", sorted(WRAPPERS))
def test_no_wrapper_is_ever_granted_by_a_prefix(name: str) -> None:
    (grant,) = granted(ALWAYS, command([name, "one"]))

    assert judge(command([name, "one", "two"]), grant) == Ask(digest(command([name, "one", "two"])))
    with pytest.raises(BadRequest):
        shorten(grant, (name,))


def test_a_grant_for_a_command_can_be_shortened_to_reach_further() -> None:
    (grant,) = granted(ALWAYS, command("git log --oneline"))

    shorter = shorten(grant, ("git", "log"))

    assert judge(command("git log -3"), grant) == Ask(digest(command("git log -3")))
    assert judge(command("git log -3"), shorter) == Allow()
    assert shorter == replace(grant, words=("git", "log"))


@pytest.mark.parametrize("words", [(), ("git", "push"), ("git", "log", "-1", "-2"), ("log",)])
def test_a_grant_cannot_be_shortened_to_other_words(words: tuple[str, ...]) -> None:
    (grant,) = granted(ALWAYS, command("git log -1"))

    with pytest.raises(BadRequest, match="Keep one or more of its first words"):
        shorten(grant, words)


def test_only_grants_for_commands_can_be_shortened() -> None:
    for grant in (*granted(ALWAYS, fetch("https://a.org/")), *granted(YES, command("git log"))):
        with pytest.raises(BadRequest):
            shorten(grant, ("https",))
        with pytest.raises(BadRequest):
            shorten(grant, ("git",))


@pytest.mark.parametrize(
    "url",
    [
        *("https://example.com", "https://example.com/other?x=1#y", "HTTPS://EXAMPLE.com/"),
        *("https://example.com:/", "https://example.com/@evil.org"),
    ],
)
def test_a_lasting_grant_for_a_host_reaches_every_page_of_it(url: str) -> None:
    (grant,) = granted(ALWAYS, fetch("https://example.com/page"))

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
    (grant,) = granted(ALWAYS, fetch("https://example.com/page"))

    assert judge(fetch(url), grant) != Allow()


@pytest.mark.parametrize("url", ODD)
def test_always_here_is_not_offered_for_an_odd_address(url: object) -> None:
    assert approval_options([fetch(url)]) == (YES, NO)


@pytest.mark.parametrize("host", ["[::1]", "[2001:DB8::1]", "127.0.0.1", "localhost"])
def test_a_host_may_be_a_number_or_a_local_name(host: str) -> None:
    (grant,) = granted(ALWAYS, fetch(f"http://{host}:8080/a"))

    assert judge(fetch(f"http://{host}:8080/b"), grant) == Allow()
    assert judge(fetch(f"http://{host}/b"), grant) != Allow()


def test_always_here_is_offered_where_every_call_can_be_held_to_something() -> None:
    calls = [SEND, command("git status"), fetch("https://example.com/")]

    assert approval_options(calls) == (YES, ALWAYS, NO)


def test_what_is_asked_about_is_written_down_to_the_last_byte() -> None:
    binding = approval_binding([command("git status")])

    assert binding == {
        "calls": [
            {
                "server": "backburner",
                "tool": "run_command",
                "definition": "d2",
                "arguments": {"command": "git status"},
                "digest": digest(command("git status")),
                "words": ["git", "status"],
                "whole": False,
            }
        ]
    }
