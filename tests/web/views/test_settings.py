"""Allowances, grants and credentials as the settings show them."""

from dataclasses import replace
from datetime import timedelta

from support.stage.make import NOON, USER

from backburner.actions.accounts.profile import SpendStatement
from backburner.core.accounts import Caller, Credential, CredentialKind, Role, Scope
from backburner.core.allowance import Allowance, AllowanceScope, AllowanceState, Amount
from backburner.core.conversation import Kind
from backburner.core.ids import ConversationId
from backburner.core.memory import Memory
from backburner.ports import ConversationSpending
from backburner.web.display import Display
from backburner.web.views.account.settings import (
    MAX_EXCERPT,
    show_allowances,
    show_browser,
    show_memory,
    show_spent_in,
    show_token,
    write_limit,
)

DISPLAY = Display(NOON, "UTC")
DAY = Allowance(AllowanceScope.DAY, 2_000_000)
STATEMENT = SpendStatement(
    zone="UTC",
    root=None,
    total=Amount(5_000_000, 900),
    today=Amount(1_500_000, 300),
    conversation=None,
    allowances=[AllowanceState(DAY, Amount(1_500_000, 300))],
    own=[DAY],
    ceilings=[Allowance(AllowanceScope.USER, 9_000_000)],
    days=[
        (NOON, Amount(1_500_000, 300)),
        (NOON - timedelta(days=1), Amount()),
        (NOON - timedelta(days=2), Amount(500_000, 10)),
    ],
    top=[
        ConversationSpending(ConversationId("c_1"), "", Kind.CHAT, Amount(0, 1_200)),
        ConversationSpending(ConversationId("c_2"), "Free", Kind.CHAT, Amount()),
    ],
)
CALLER = Caller(
    user=USER,
    role=Role.MEMBER,
    scopes=frozenset(Scope),
    credential="k_1",
    kind=CredentialKind.SESSION,
)
TOKEN = Credential(
    id="k_2",
    kind=CredentialKind.TOKEN,
    name="calendar",
    scopes=frozenset({Scope.READ}),
    uses=frozenset(),
    connections=frozenset(),
    created_at=NOON,
    expires_at=None,
    used_at=None,
)


def test_an_allowance_has_what_was_spent_against_it() -> None:
    day, run, user = show_allowances(STATEMENT)

    assert (day.value, day.part, list(day.lines)) == (
        "$2.00",
        75,
        ["$1.50 spent today", "set by you"],
    )
    assert (run.value, run.part) == ("none", None)
    assert (user.value, user.part) == ("none", None)
    assert user.lines[-1] == "Your operator allows $9.00."


def test_what_is_over_its_limit_fills_the_meter_and_no_more() -> None:
    nothing = AllowanceState(Allowance(AllowanceScope.DAY, 0), STATEMENT.today)
    assert show_allowances(replace(STATEMENT, allowances=[nothing]))[0].part == 100
    in_tokens = Allowance(AllowanceScope.DAY, 9_000_000, 100)
    over = replace(STATEMENT, allowances=[AllowanceState(in_tokens, STATEMENT.today)])
    assert show_allowances(over)[0].part == 100


def test_a_limit_is_written_as_it_is_typed() -> None:
    assert write_limit(Allowance(AllowanceScope.RUN, 2_500_000, 500_000)) == "$2.50, 500000 tokens"
    assert write_limit(Allowance(AllowanceScope.RUN, None, 7)) == "7 tokens"


def test_conversations_that_have_cost_something_are_named_with_it() -> None:
    (shown,) = show_spent_in(STATEMENT)

    assert (shown.id, shown.title, shown.spent) == ("c_1", "Untitled", "1.2k tokens")


def test_a_token_says_what_it_may_when_it_ends_and_whether_it_is_used() -> None:
    shown = show_token(TOKEN, CALLER, DISPLAY)
    assert list(shown.lines) == ["Read", "does not end", "never used"]
    used = replace(TOKEN, used_at=NOON, expires_at=NOON + timedelta(days=1))
    assert list(show_token(used, CALLER, DISPLAY).lines) == [
        "Read",
        "ends tomorrow 12:00",
        "used now",
    ]


def test_a_browser_that_is_not_known_has_a_name_all_the_same() -> None:
    session = replace(TOKEN, id="k_1", kind=CredentialKind.SESSION, name="")

    shown = show_browser(session, CALLER, DISPLAY)

    assert (shown.name, shown.is_this) == ("A browser", True)
    assert list(shown.lines) == ["last seen now", "signed in now"]


def test_a_long_memory_is_cut() -> None:
    memory = Memory(
        key="k",
        text="x" * (MAX_EXCERPT + 1),
        conversation_id=None,
        outside=False,
        created_at=NOON,
        updated_at=NOON,
    )

    shown = show_memory(memory, DISPLAY)

    assert (len(shown.text), shown.is_long) == (MAX_EXCERPT, True)
