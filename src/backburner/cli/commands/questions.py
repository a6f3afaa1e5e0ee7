"""`backburner questions` and `answer`."""

import json
import sys
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.output import (
    local_time,
    print_fields,
    print_items,
    print_json,
    print_result,
    printable,
    short_id,
    truncate,
)
from backburner.cli.server_options import json_option, with_server
from backburner.core.errors import BadRequest
from backburner.core.question import NO, Purpose


@click.command("questions")
@click.argument("question", required=False)
@json_option
@with_server
def questions(server: Server, *, question: str | None, as_json: bool) -> None:
    """List open questions, or show one with everything that its answer is for.

    QUESTION is its id, or the start of it. Answer it with `backburner answer`.
    """
    if question is not None:
        one = _load(server, id_prefix.find_question(server, question))
        if as_json:
            print_json(one)
        else:
            _show(one)
        return
    items = list(server.items("/api/questions"))
    rows = [
        {
            "ID": short_id(item["id"]),
            "PURPOSE": item["purpose"],
            "ASKED": local_time(item["asked_at"]),
            "QUESTION": truncate(item["prompt"]),
            "OPTIONS": " / ".join(item["options"]),
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

    QUESTION is its id, or the start of it. TEXT is the answer. Before a call is approved, the whole
    call is shown.
    """
    question_id, said = id_prefix.find_question(server, question), " ".join(text)
    if not is_sure and said.strip().lower() != NO:
        _confirm(server, question_id, said)
    conversation = server.post(f"/api/questions/{question_id}/answer", {"answer": said})
    print_result(conversation, "Answered.", as_json=as_json)


def _confirm(server: Server, question_id: str, said: str) -> None:
    open_questions = {one["id"]: one for one in server.items("/api/questions")}
    shown = open_questions.get(question_id)
    if shown is None or shown["purpose"] != Purpose.APPROVAL:
        return
    if not sys.stdin.isatty():
        raise BadRequest(
            "An approval is shown before it is given.",
            hint=f"Look at it with `backburner questions {short_id(question_id)}`, and add --yes.",
        )
    _show(shown)
    click.confirm(f"Answer {said!r} to this?", abort=True)


def _load(server: Server, question_id: str) -> Any:
    for one in server.items("/api/questions"):
        if one["id"] == question_id:
            return one
    raise BadRequest("This question is not open.", hint="List open ones: `backburner questions`.")


def _show(question: Any) -> None:
    print_fields(
        {
            "Question": question["id"],
            "Of": question["title"],
            "Asked": local_time(question["asked_at"]),
            "Options": " / ".join(question["options"]),
        }
    )
    click.echo(f"\n{printable(question['prompt'])}")
    for call in question["binds_to"].get("calls", ()):
        arguments = json.dumps(call["arguments"], indent=2, ensure_ascii=False)
        click.echo(f"\nThe whole call of {printable(call['tool'])}:\n{printable(arguments)}")
