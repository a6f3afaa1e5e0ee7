"""`backburner questions` and `answer`."""

import json
import sys
from textwrap import fill
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.command_name import name_commands
from backburner.cli.confirmation import confirm
from backburner.cli.live.question_text import list_options, show_question
from backburner.cli.output import (
    GAP,
    local_time,
    print_fields,
    print_items,
    print_json,
    print_result,
    printable,
    short_id,
    terminal_width,
    truncate,
)
from backburner.cli.server_options import json_option, with_server
from backburner.core.conversation import Kind
from backburner.core.errors import BadRequest, Conflict
from backburner.core.question import DECLINE, NO, Purpose, QuestionType, match_number

INDENT = "    "
#: Of a question in the list; all of it is shown by its id.
MAX_PROMPT_LINES = 4
#: Of a terminal that says that it is narrower.
MIN_WIDTH = 40
#: Questions whose answer starts a run of the kind that asked.
ANSWERED_BY_RUN = (Purpose.QUESTION, Purpose.APPROVAL)


@click.command("questions")
@click.argument("question", required=False)
@json_option
@with_server
def questions(server: Server, *, question: str | None, as_json: bool) -> None:
    """List open questions, or show one with everything that its answer is for.

    QUESTION is its id, or the start of it. The commands answer, approve and reject answer it.
    """
    if question is not None:
        one = _load(server, id_prefix.find_question(server, question))
        if as_json:
            print_json(one)
        else:
            _show(one)
        return
    items = list(server.items("/api/questions"))
    if items and sys.stdout.isatty() and not as_json:
        for item in items:
            _show_short(item)
        return
    rows = [
        {
            "ID": short_id(item["id"]),
            "PURPOSE": item["purpose"],
            "ASKED": local_time(item["asked_at"]),
            "CONVERSATION": truncate(item["title"]),
            "QUESTION": _one_line(item["prompt"]),
            "OPTIONS": " / ".join(list_options(item)),
        }
        for item in items
    ]
    print_items(items, rows, empty="No open questions.", as_json=as_json)


@click.command("answer")
@click.argument("question")
@click.argument("text", nargs=-1, required=True)
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask once more before an approval.")
@json_option
@with_server
def answer(
    server: Server, *, question: str, text: tuple[str, ...], is_sure: bool, as_json: bool
) -> None:
    """Answer a question.

    QUESTION is its id, or the start of it. TEXT is the answer; for a choice, its number
    is enough. Before a call is approved, the whole call is shown; so are the defaults that a
    server gets besides an answer.
    """
    one = _load(server, id_prefix.find_question(server, question))
    answer_text = _meant(one, " ".join(text))
    if not is_sure and answer_text.strip().lower() != NO:
        confirm_call(one, answer_text)
    conversation = server.post(f"/api/questions/{one['id']}/answer", {"answer": answer_text})
    answered = f"Answered: {truncate(answer_text)}. {describe_continuation(conversation, one)}"
    print_result(conversation, answered.strip(), as_json=as_json)


def confirm_call(question: Any, answer_text: str) -> None:
    """Show what an answer does besides what it says, and ask once more."""
    if question["purpose"] != Purpose.APPROVAL and not _sends_defaults(question, answer_text):
        return
    short = short_id(question["id"])
    if not sys.stdin.isatty():
        raise BadRequest(
            "What you agree to is shown before you do.",
            hint=f"Look at it with `backburner questions {short}`, and add --yes.",
        )
    _show(question)
    confirm(f"Answer {answer_text!r} to this?", is_sure=False)


def _sends_defaults(question: Any, answer_text: str) -> bool:
    """Say whether a server may get defaults besides an answer."""
    requests = question["binds_to"].get("requests", ())
    fields = [field for request in requests for field in request["fields"]]
    is_declined = answer_text.strip().lower() == DECLINE
    return len(fields) > 1 and not is_declined and any(one["default"] is not None for one in fields)


def describe_continuation(conversation: Any, question: Any) -> str:
    """Say what follows from an answer."""
    texts = {
        "background": "It continues with your answer.",
        "waiting_input": "It has another question for you.",
        "archived": "It is archived.",
    }
    if conversation["status"] == "active" and question["purpose"] in ANSWERED_BY_RUN:
        short = short_id(conversation["id"])
        # A task may be over before its answer is printed; a chat ends with no work of its own.
        is_over = conversation["ended_as"] is not None and conversation["kind"] != Kind.CHAT
        subject = "It has already ended" if is_over else "The reply continues"
        return name_commands(f"{subject}: `backburner conversations {short}`.")
    return texts.get(conversation["status"], "")


def _load(server: Server, question_id: str) -> Any:
    for one in server.items("/api/questions"):
        if one["id"] == question_id:
            return one
    raise Conflict("This question is not open.", hint="List open ones: `backburner questions`.")


def _show_short(item: Any) -> None:
    """Show a question in a terminal: a line about it, and below it what it says."""
    facts = [short_id(item["id"]), item["purpose"], local_time(item["asked_at"]), item["title"]]
    width = max(terminal_width(), MIN_WIDTH)
    text, limit = _one_line(item["prompt"]), MAX_PROMPT_LINES * (width - len(INDENT))
    text = text if len(text) <= limit else f"{text[: limit - 3]}..."
    lines = [text, " / ".join(list_options(item))]
    click.echo(printable(GAP.join(facts)))
    for line in filter(None, map(printable, lines)):
        click.echo(fill(line, width, initial_indent=INDENT, subsequent_indent=INDENT))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _meant(question: Any, text: str) -> str:
    """Return the option that a number stands for, so that it can be shown; else the text."""
    options = question["options"] if question["type"] == QuestionType.CHOICE else ()
    return match_number(tuple(options), text) or text


def _show(question: Any) -> None:
    print_fields(
        {
            "Question": question["id"],
            "Of": question["title"],
            "Asked": local_time(question["asked_at"]),
        }
    )
    click.echo(f"\n{show_question(question)}")
    for call in question["binds_to"].get("calls", ()):
        arguments = json.dumps(call["arguments"], indent=2, ensure_ascii=False)
        click.echo(f"\nThe whole call of {printable(call['tool'])}:\n{printable(arguments)}")
