"""Discovery: when it runs, what it is shown, and that it sends nothing itself."""

from datetime import timedelta

import pytest
from support.requirements import requirement
from support.stage import make
from support.stage.make import NOON, USER

from backburner.core import prompt, tool_policy, transitions
from backburner.core.conversation import Kind, MessageRole, Notify, Status
from backburner.core.errors import BadRequest
from backburner.core.outcome import Complete, Continue, NeedsInput, Outcome
from backburner.core.question import NewQuestion, QuestionType
from backburner.core.schedule import Interval
from backburner.core.tool_policy import Tool
from backburner.core.work import discovery
from backburner.core.work.discovery import Presence, Snippet, check_repository, gh_arguments

MINUTE = timedelta(minutes=1)
EVERY = 30 * MINUTE
LOOKS = transitions.start_discovery(make.CONVERSATION, USER, every=EVERY, now=NOON).conversation
DRAFT = NewQuestion(type=QuestionType.INPUT, prompt="Which?")


@pytest.mark.parametrize(
    ("silence", "awaits_reply", "idle_for", "runs"),
    [
        (-1, False, 10, False),
        (9, False, 10, False),
        (10, False, 10, True),
        (60, False, 10, True),
        (120, False, 10, True),
        (121, False, 10, False),
        (20, True, 10, False),
        (20, False, None, False),
        (None, False, 10, False),
    ],
)
def test_discovery_runs_while_the_user_is_silent_and_has_not_left(
    silence: int | None, idle_for: int | None, *, awaits_reply: bool, runs: bool
) -> None:
    last_message_at = None if silence is None else NOON - silence * MINUTE
    presence = Presence(last_message_at=last_message_at, awaits_reply=awaits_reply)

    may = discovery.may_discover(
        presence, now=NOON, idle_for=None if idle_for is None else idle_for * MINUTE
    )

    assert may is runs


def test_skipped_discovery_slots_leave_nothing_to_account_for() -> None:
    passed = transitions.skip_discovery_slot(LOOKS, now=NOON + 65 * MINUTE)

    assert passed.next_run_at == NOON + 90 * MINUTE
    begun = transitions.begin(passed, now=NOON + 90 * MINUTE)
    assert (begun.slot_at, begun.step.skipped) == (NOON + 90 * MINUTE, ())


@pytest.mark.parametrize(
    "outcome",
    [
        Complete(message="I found something.", final=True),
        Continue(message="More later."),
        NeedsInput(message="Well?", question=DRAFT),
    ],
)
def test_discovery_sends_and_asks_nothing_itself_and_does_not_end(outcome: Outcome) -> None:
    run = make.run(schedule_revision=LOOKS.schedule_revision)
    step = transitions.finish(LOOKS, run, discovery.keep_state_only(outcome), now=NOON + EVERY)

    assert (step.messages, step.notices, step.asked) == ((), (), ())
    assert step.conversation.status is Status.BACKGROUND
    assert step.conversation.next_run_at == NOON + 2 * EVERY


def test_discovery_can_read_and_propose_but_start_nothing() -> None:
    scope = tool_policy.allowed_tools(LOOKS)

    assert scope == ("task_propose", "task_list", "memory_search", "read_file", "list_files")
    assert tool_policy.allowed_tools(make.conversation(tools=("a",))) == ("a",)
    assert not tool_policy.is_tool_allowed(
        Tool(server="claude", name="read_file", definition=""), scope
    )
    # What it proposes is not held to what it may do itself, nor kept from being told of.
    assert (LOOKS.kind, LOOKS.tools, LOOKS.notify) == (Kind.DISCOVERY, None, Notify.ON_CHANGE)


@requirement("B-discovery-context")
def test_discovery_is_shown_messages_tasks_and_the_repository() -> None:
    said = make.message("I will merge it later.")
    result = make.message("From\noutside.", role=MessageRole.ASSISTANT, outside=True)
    task = make.conversation(
        kind=Kind.TASK, title="Watch", status=Status.BACKGROUND, schedule=Interval(EVERY, NOON)
    )

    shown = discovery.format_surroundings(
        [Snippet("A\nreview", said), Snippet("Mail", result)],
        [task, make.conversation(title="Odd")],
        "## main\n",
        zone="UTC",
    )

    talk, tasks, repository = shown.split("\n\n# ")
    assert talk.startswith(
        "# Recent messages in all chats\n[A review] User (chat): I will merge it later.\n"
        "[Mail] You (chat): <outside "
    )
    assert tasks == "Open tasks\n- Watch (active, every 30 minutes)\n- Odd ()"
    assert repository.startswith("The state of the repository\n<outside ")
    assert "## main" in repository


def test_discovery_is_shown_that_there_are_no_tasks() -> None:
    assert discovery.format_surroundings([], [], " ", zone="UTC") == "# Open tasks\nNone."


def test_discovery_is_shown_the_newest_messages_within_bounds() -> None:
    talk = [Snippet("t", make.message(f"{number} " + "x" * 5_000)) for number in range(100)]

    shown = discovery.format_surroundings(talk, [], "y" * 50_000, zone="UTC")

    assert len(shown) < discovery.MAX_SNIPPETS_CHARS + discovery.MAX_REPOSITORY_CHARS + 500
    assert " 99 x" in shown
    assert " 50 x" not in shown
    assert prompt.TRUNCATION_MARK in shown


def test_a_repository_is_named_by_owner_and_name_and_is_no_option() -> None:
    assert check_repository("ada/my.app-2") == "ada/my.app-2"
    for name in ("", "app", "/app", "ada/", "-a/b", "a/-b", "a/b/c", "a/b c", "a/b\n", "a" * 300):
        with pytest.raises(BadRequest, match="owner/name"):
            check_repository(name)


def test_gh_is_asked_about_this_repository_only() -> None:
    lines = [" ".join(arguments) for arguments in gh_arguments("ada/app")]
    assert lines == ["run list --repo ada/app --limit 10", "pr list --repo ada/app --limit 10"]
