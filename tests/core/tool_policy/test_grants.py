"""The grants that each answer to an approval gives, and their lifetime."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.cases.policy_cases import MAIL, SEND, asked_about, command, fetch, granted, judge
from support.stage import make
from support.stage.make import NOON

from backburner.core.conversation import Kind, Use
from backburner.core.ids import ConnectionId, derive_grant_id
from backburner.core.question import NO, YES
from backburner.core.tool_policy import (
    ALWAYS_HERE,
    SINGLE_USE_LIFETIME,
    Allow,
    Ask,
    GrantMatch,
    Tool,
    ToolCall,
    approval_binding,
    approval_options,
    call_digest,
    decide,
    grant_ids,
    grants_given,
    inherits_grants,
)


def test_a_yes_is_for_one_call_and_is_used_up_by_it() -> None:
    (grant,) = granted(YES, SEND)

    assert judge(SEND, grant) == Allow(uses=grant.id)
    assert grant.expires_at == NOON + SINGLE_USE_LIFETIME


def test_a_no_leaves_nothing_behind() -> None:
    assert granted(NO, SEND) == ()


def test_an_answer_other_than_yes_or_always_gives_no_grant() -> None:
    assert granted("perhaps", SEND) == ()


def test_a_yes_that_was_not_used_in_time_is_void() -> None:
    (grant,) = granted(YES, SEND)

    just_before = decide(
        SEND,
        [grant],
        allowed=None,
        in_doubt=False,
        now=NOON + SINGLE_USE_LIFETIME - timedelta(seconds=1),
    )
    too_late = decide(SEND, [grant], allowed=None, in_doubt=False, now=NOON + SINGLE_USE_LIFETIME)

    assert just_before == Allow(uses=grant.id)
    assert too_late == Ask(call_digest(SEND))


def test_two_calls_asked_about_together_get_a_grant_each() -> None:
    other = ToolCall(MAIL, {"to": "bob@example.com"})

    first, second = granted(YES, SEND, other)

    assert first.id != second.id
    assert judge(SEND, first, second) == Allow(uses=first.id)
    assert judge(other, first, second) == Allow(uses=second.id)


def test_the_same_call_twice_uses_up_one_grant_at_a_time() -> None:
    first, second = granted(YES, SEND, SEND)

    assert judge(SEND, first, second) == Allow(uses=first.id)
    assert judge(SEND, second) == Allow(uses=second.id)


def test_always_here_reaches_every_call_of_the_tool_and_is_not_used_up() -> None:
    (lasting,) = granted(ALWAYS_HERE, SEND)
    (single,) = granted(YES, SEND)

    assert judge(ToolCall(MAIL, {"to": "anyone"}), lasting) == Allow()
    assert judge(SEND, single, lasting) == Allow()
    assert lasting.expires_at is None


@pytest.mark.parametrize(
    "other",
    [
        replace(MAIL, definition="d9"),
        replace(MAIL, server="mail2"),
        replace(MAIL, name="send_all"),
        # A later one of the same name.
        replace(MAIL, connection=ConnectionId("n_2")),
        replace(MAIL, grant_match=GrantMatch.COMMAND),
    ],
)
def test_always_here_ends_where_the_tool_is_no_longer_the_same(other: Tool) -> None:
    (lasting,) = granted(ALWAYS_HERE, SEND)
    call = ToolCall(other, {**SEND.arguments, "command": "ls"})

    assert judge(call, lasting) == Ask(call_digest(call))


def test_always_here_is_for_the_connection_of_the_call_that_was_shown() -> None:
    send = replace(SEND, tool=replace(MAIL, connection=ConnectionId("n_1")))
    later = replace(SEND, tool=replace(MAIL, connection=ConnectionId("n_2")))
    (lasting,) = granted(ALWAYS_HERE, send)

    assert judge(send, lasting) == Allow()
    assert judge(later, lasting) == Ask(call_digest(later))


def test_always_here_to_a_question_that_recorded_no_connection_allows_nothing_on_one() -> None:
    send = replace(SEND, tool=replace(MAIL, connection=ConnectionId("n_1")))
    binding = approval_binding([send])
    del binding["calls"][0]["connection"]
    asked = replace(asked_about(send), binds_to=binding)

    (lasting,) = grants_given(asked, ALWAYS_HERE, now=NOON)

    assert judge(send, lasting) == Ask(call_digest(send))


@pytest.mark.parametrize("kind", Kind)
def test_only_jobs_work_under_the_grants_of_their_parent(kind: Kind) -> None:
    work = make.conversation(kind=kind)

    assert inherits_grants(work) == (kind is Kind.JOB)
    # What a token hands out was not what the user allowed.
    assert not inherits_grants(replace(work, uses=frozenset(Use)))


def test_always_here_is_offered_where_every_call_can_be_held_to_something() -> None:
    calls = [SEND, command("git fetch"), fetch("https://example.com/")]

    assert approval_options(calls) == (YES, ALWAYS_HERE, NO)


def test_an_approval_records_its_calls_to_the_last_byte() -> None:
    binding = approval_binding([command("git fetch")])

    assert binding == {
        "calls": [
            {
                "server": "backburner",
                "tool": "run_command",
                "definition": "d2",
                "connection": None,
                "arguments": {"command": "git fetch"},
                "digest": call_digest(command("git fetch")),
                "words": ["git fetch"],
            }
        ]
    }


def test_the_grants_of_an_answer_are_found_by_what_it_left_in_the_inbox() -> None:
    binding: dict[str, list[object]] = {"calls": [{}, {}]}
    found = grant_ids({"question_id": "q_1", "binds_to": binding})

    assert found == (derive_grant_id("q_1", 0), derive_grant_id("q_1", 1))
    assert grant_ids({"question_id": "q_1"}) == ()
