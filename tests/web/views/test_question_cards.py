"""Cards of questions: what they show of calls, what "always here" covers, and forms of servers."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.stage.make import CONVERSATION, NOON, RUN

from backburner.core.commands import Join, LineStep
from backburner.core.connections.inputs.input_question import input_question
from backburner.core.connections.inputs.input_request import (
    InputField,
    InputKind,
    InputNeeded,
    InputOption,
    InputRequest,
)
from backburner.core.ids import CallId, ConnectionId, QuestionId
from backburner.core.question import FIRST_REMINDER, Purpose, Question, QuestionType
from backburner.core.run import RunKind
from backburner.core.shown_call import MAX_CALL_CHARS, show_call
from backburner.core.tool_policy import (
    GRANTS_TO_TASK,
    GrantMatch,
    Tool,
    ToolCall,
    approval_binding,
    approval_options,
)
from backburner.web.display import Display
from backburner.web.rendering import render
from backburner.web.views.question import QuestionCard, show_question

DISPLAY = Display(NOON + timedelta(minutes=5), "UTC")
RUN_COMMAND = Tool(server="w", name="run_command", definition="d", grant_match=GrantMatch.COMMAND)
SIGNED_IN = Tool(server="w", name="run_signed_in", definition="d", grant_match=GrantMatch.PROGRAM)
FETCH = Tool(server="w", name="fetch_url", definition="d", grant_match=GrantMatch.HOST)
SEND = Tool(server="mail", name="send", definition="d", connection=ConnectionId("x_mail"))
HOSTILE = '"><script>alert(1)</script>'


def permission(*calls: ToolCall, more: str = "") -> Question:
    shown = "\n".join(map(show_call, calls))
    return Question(
        id=QuestionId("q_one"),
        purpose=Purpose.APPROVAL,
        type=QuestionType.CHOICE,
        prompt=f"May I do this?\n{shown}{more}",
        options=approval_options(calls),
        run_id=RUN,
        run_kind=RunKind.BACKGROUND,
        binds_to=approval_binding(calls),
        asked_at=NOON,
    )


def show(question: Question) -> QuestionCard:
    return show_question(question, CONVERSATION, "Work", DISPLAY)


def confirmation(call: ToolCall) -> str:
    answers = {answer.answer: answer.confirm for answer in show(permission(call)).answers}
    return answers["always here"].partition("\n\n")[2]


def test_a_call_that_is_shown_in_full_is_not_repeated() -> None:
    for call in (
        ToolCall(RUN_COMMAND, {"command": "npm test\n  --all", "seconds": 5}),
        ToolCall(RUN_COMMAND, {"command": "x" * (MAX_CALL_CHARS + 50), "network": True}),
        ToolCall(SIGNED_IN, {"program": "gh", "arguments": ["pr", "create"], "folder": "a"}),
        ToolCall(SEND, {"to": "Ann", "text": "May I do this?"}),
        ToolCall(FETCH, {"url": "https://example.org/a"}),
    ):
        assert show(permission(call)).explained == ""
    both = permission(ToolCall(SEND, {"to": "Ann"}), ToolCall(SEND, {"to": "Bob"}))
    assert (show(both).explained, len(show(both).calls)) == ("", 2)


def test_steps_and_what_comes_of_a_call_are_shown() -> None:
    steps = (LineStep(words=("cd", "a")), LineStep(join=Join.IF_SUCCEEDED, words=("npm", "test")))
    question = permission(
        ToolCall(RUN_COMMAND, {"command": "cd a && npm test"}, steps), more="\n  It would cost $3."
    )

    card = show(question)

    assert card.has_steps
    assert card.explained.splitlines() == [
        "1. Go to the folder with `cd a`.",
        "2. If the last step that ran succeeded: run `npm test`.",
        "  It would cost $3.",
    ]
    preview = show(permission(ToolCall(SEND, {"to": "Ann"}), more="\nIt would reach 3 people."))
    assert (preview.explained, preview.has_steps) == ("It would reach 3 people.", False)
    unreadable = show(permission(ToolCall(RUN_COMMAND, {"command": "eval $X"}, ())))
    assert "could not be split" in unreadable.explained


def test_the_numbers_of_a_list_stay_with_its_calls() -> None:
    call = ToolCall(SEND, {"to": "Ann"})
    listed = replace(
        permission(call),
        prompt=f"May I?\n1. {show_call(call)}\nNot listed: 2 more.",
        binds_to={**approval_binding([call]), GRANTS_TO_TASK: "c_task"},
    )

    assert show(listed).explained == f"1. {show_call(call)}\nNot listed: 2 more."


def test_a_call_over_the_length_of_a_prompt_is_shown_whole() -> None:
    line = f"echo {'x' * 2 * MAX_CALL_CHARS}\u202eend"

    (shown,) = show(permission(ToolCall(RUN_COMMAND, {"command": line}))).calls

    assert "x" * 2 * MAX_CALL_CHARS in shown.html
    assert "U+202E" in shown.html
    assert "\u202e" not in shown.html


def test_always_here_says_what_it_covers_and_not_only_this_call() -> None:
    send = ToolCall(SEND, {"to": "Ann"})
    assert confirmation(send) == "mail/send, whatever it is given"
    page = ToolCall(FETCH, {"url": "https://example.org/a"})
    assert confirmation(page) == "fetch_url, any page of https://example.org"
    exact = ToolCall(RUN_COMMAND, {"command": "git push origin main"})
    assert confirmation(exact) == "git push origin main"
    reads = ToolCall(SIGNED_IN, {"program": "gh", "arguments": ["run", "list", "--repo", "a/b"]})
    assert confirmation(reads).startswith("gh run list")
    assert confirmation(reads).endswith(" … with other options too")


def test_what_a_call_uses_is_named() -> None:
    signed_in = ToolCall(SIGNED_IN, {"program": "gh", "arguments": ["pr", "create"]})
    online = ToolCall(RUN_COMMAND, {"command": "npm test", "network": True})

    card = show(permission(signed_in, online, online))

    assert card.uses == [("key", "uses your gh sign-in"), ("globe", "reaches the network")]
    assert card.calls[0].html.startswith('<span class="prompt">$</span> ')
    # A tool of others is not one of ours because its arguments look like it.
    other = show(permission(ToolCall(SEND, {"command": "ls", "network": True})))
    assert other.uses == []
    assert "mail/send" in other.calls[0].html


def test_the_network_is_said_in_words_and_nothing_else_is_left_out() -> None:
    rest = {"network": True, "seconds": 5}

    card = show(permission(ToolCall(RUN_COMMAND, {"command": "npm test", **rest})))
    others = show(permission(ToolCall(SEND, {"command": "npm test", **rest})))

    assert ("network" in card.calls[0].html, "seconds" in card.calls[0].html) == (False, True)
    assert "network" in others.calls[0].html


@pytest.mark.parametrize(
    ("calls", "title"),
    [
        ([ToolCall(RUN_COMMAND, {"command": "npm test"})], "May I run this command?"),
        ([ToolCall(SIGNED_IN, {"program": "gh", "arguments": []})], "May I run this, signed in?"),
        ([ToolCall(FETCH, {"url": "https://example.org/a"})], "May I open this page?"),
        ([ToolCall(SEND, {"to": "Ann"})], "May I use mail/send?"),
        ([ToolCall(SEND, {"to": "Ann"}), ToolCall(SEND, {"to": "Bob"})], "May I do this?"),
    ],
)
def test_the_title_of_a_permission_says_what_kind_of_call_it_is(
    calls: list[ToolCall], title: str
) -> None:
    assert show(permission(*calls)).title == title


def asked(*requests: InputRequest) -> Question:
    return input_question(
        InputNeeded(requests=requests),
        ToolCall(SEND, {"to": "Ann"}),
        CallId("t_call"),
        server="Mail (mail.example)",
        run_id=RUN,
        kind=RunKind.BACKGROUND,
        now=NOON,
    )


def field(kind: InputKind = InputKind.TEXT, name: str = "it", **more: Any) -> InputField:
    return InputField(name=name, kind=kind, **more)


OPTIONS = (InputOption("r", "Red"), InputOption("g", ""))


def test_what_a_server_asks_for_is_a_form_of_its_fields() -> None:
    fields = (
        field(name="when", title="When", format="date", required=True, default="2026-01-02"),
        field(InputKind.NUMBER, "price", description="In euros.", default=0.5),
        field(InputKind.SWITCH, "gift", default=False),
        field(InputKind.CHOICE, "colour", options=OPTIONS, default="g"),
        field(InputKind.CHOICES, "more", options=OPTIONS, default=("r",)),
        field(name="note", default="x" * 2_000),
    )

    card = show(asked(InputRequest(key="one", message="Well?", fields=fields)))

    form = card.form
    assert form is not None
    assert (card.title, form.quotes) == (
        "Mail (mail.example) asks you something during mail/send",
        ["Well?"],
    )
    assert form.note == "Your answer goes to Mail (mail.example) only; the agent does not see it."
    assert (card.calls, card.is_input, card.takes_text) == ([], False, False)
    when, price, gift, colour, more, note = form.fields
    assert (when.label, when.type, when.value, when.required) == (
        "When",
        "date",
        "2026-01-02",
        True,
    )
    assert (price.label, price.type, price.value, price.about) == (
        "price",
        "number",
        "0.5",
        "In euros.",
    )
    assert [(one.value, one.chosen) for one in gift.options] == [("true", False), ("false", True)]
    assert [(one.label, one.chosen) for one in colour.options] == [("Red", False), ("g", True)]
    assert [one.chosen for one in more.options] == [True, False]
    # A default that the question did not show is not sent.
    assert note.value == ""


def test_one_choice_of_a_server_has_buttons_and_no_free_text() -> None:
    colour = field(InputKind.CHOICE, title="Colour", description="Of the car.", options=OPTIONS[:1])

    card = show(asked(InputRequest(key="one", message="Well?", fields=(colour,))))

    assert card.form is not None
    assert (card.form.fields, card.form.quotes) == ([], ["Well?", "Colour: Of the car."])
    assert [answer.answer for answer in card.answers] == ["Red", "decline"]
    assert not card.takes_text


def test_a_form_of_hostile_words_is_only_text() -> None:
    options = (InputOption(HOSTILE, HOSTILE), InputOption("b", "\u202eb"))
    kinds: list[tuple[InputKind, dict[str, Any]]] = [
        (InputKind.TEXT, {"default": HOSTILE}),
        (InputKind.CHOICE, {"options": options, "default": HOSTILE}),
        (InputKind.CHOICES, {"options": options}),
        (InputKind.SWITCH, {}),
    ]
    fields = [
        field(kind, f"{number}.__proto__.{HOSTILE}", title=HOSTILE, description=HOSTILE, **more)
        for number, (kind, more) in enumerate(kinds)
    ]
    visit = "https://pay.example/?a=%22%3E"
    card = show(asked(InputRequest(key="one", message=HOSTILE, fields=tuple(fields), url=visit)))

    html = render("pages/question.html", DISPLAY, card=card)

    assert "<script" not in html
    assert "\u202e" not in html
    # Names of elements are ours: those of a server could hide what a form has.
    assert 'name="values.1"' in html
    assert 'data-key="0.__proto__.&#34;&gt;&lt;script' in html
    assert f'href="{visit}" target="_blank" rel="noopener noreferrer"' in html


@pytest.mark.parametrize(
    ("prompt", "title", "text"),
    [
        (
            "Reconnect Mail: mail.example no longer accepts the sign-in. Work waits.",
            "Reconnect Mail: mail.example no longer accepts the sign-in.",
            "Work waits.",
        ),
        ("Reconnect Mail", "Reconnect Mail", ""),
    ],
)
def test_the_title_of_a_question_of_ours_is_its_first_sentence(
    prompt: str, title: str, text: str
) -> None:
    question = replace(
        permission(ToolCall(SEND, {})),
        purpose=Purpose.RECONNECT,
        prompt=prompt,
        options=(),
        binds_to={"connection": "x_mail", "server": "mail.example"},
    )

    assert (show(question).title, show(question).text) == (title, text)


def test_a_question_that_was_put_off_says_when_it_asks_again() -> None:
    asked_at_once = permission(ToolCall(SEND, {"to": "Ann"}))
    reminded = replace(asked_at_once, remind_at=NOON + FIRST_REMINDER)
    put_off = replace(asked_at_once, remind_at=NOON + timedelta(hours=1))

    assert show(asked_at_once).later == show(reminded).later == ""
    assert show(put_off).later == "today 13:00"
    html = render("pages/question.html", DISPLAY, card=show(put_off))
    assert "<b>Later.</b> I will ask again today 13:00." in html
    assert 'hidden><section class="question"' in html.replace("\n", "")
    # It is due.
    due = Display(NOON + timedelta(hours=2), "UTC")
    assert show_question(put_off, CONVERSATION, "Work", due).later == ""


@pytest.mark.parametrize(
    ("limit", "label"),
    [
        ({"micros": 2_000_000, "tokens": None}, "Raise it to $4.00"),
        ({"micros": None, "tokens": 600_000}, "Raise it to 1.2M tokens"),
    ],
)
def test_an_allowance_names_what_it_is_raised_to(limit: dict[str, Any], label: str) -> None:
    question = replace(
        permission(ToolCall(SEND, {})),
        purpose=Purpose.ALLOWANCE,
        options=("raise", "wait until tomorrow", "stop"),
        binds_to=limit,
    )

    labels = [answer.label for answer in show(question).answers]

    assert labels == [label, "Wait until tomorrow", "Stop it"]
