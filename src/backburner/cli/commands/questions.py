"""`backburner questions` and `answer`."""

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.output import local_time, print_items, print_result, short_id, truncate
from backburner.cli.server_options import json_option, with_server


@click.command("questions")
@json_option
@with_server
def questions(server: Server, *, as_json: bool) -> None:
    """List open questions.

    Answer one with `backburner answer`.
    """
    items = list(server.items("/api/questions"))
    rows = [
        {
            "ID": short_id(question["id"]),
            "PURPOSE": question["purpose"],
            "ASKED": local_time(question["asked_at"]),
            "QUESTION": truncate(question["prompt"]),
            "OPTIONS": " / ".join(question["options"]),
        }
        for question in items
    ]
    print_items(items, rows, empty="No open questions.", as_json=as_json)


@click.command("answer")
@click.argument("question")
@click.argument("text", nargs=-1, required=True)
@json_option
@with_server
def answer(server: Server, *, question: str, text: tuple[str, ...], as_json: bool) -> None:
    """Answer a question.

    QUESTION is its id, or the start of it. TEXT is the answer.
    """
    question_id = id_prefix.find_question(server, question)
    conversation = server.post(f"/api/questions/{question_id}/answer", {"answer": " ".join(text)})
    print_result(conversation, "Answered.", as_json=as_json)
