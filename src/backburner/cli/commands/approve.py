"""`backburner approve` and `reject`: say yes or no to a proposal, a call or a question."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.commands.questions import confirm_call, describe_continuation
from backburner.cli.commands.tasks import summarize
from backburner.cli.main import COMMANDS
from backburner.cli.output import print_result, short_id, truncate
from backburner.cli.server_options import json_option, with_server
from backburner.core.errors import BadRequest, Conflict, NotFound
from backburner.core.question import NO, YES, Purpose

#: Of the start of an id, after its type letter: a name as short may be meant instead.
MIN_PREFIX_CHARS = 6
_ARGUMENT = (
    "WHAT is an open question, or the task or job that asks: its name, its id, or the first"
    f" {MIN_PREFIX_CHARS} or more characters of the id."
)


@click.command("approve", help=f"{COMMANDS['approve']}\n\n{_ARGUMENT}")
@click.argument("what")
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask once more before a call.")
@json_option
@with_server
def approve(server: Server, *, what: str, is_sure: bool, as_json: bool) -> None:
    question = _find_question(server, what)
    if question["purpose"] == Purpose.PROPOSAL:
        task = _decide(server, question, "approve")
        print_result(task, f"Approved: {summarize(task)}", as_json=as_json)
        return
    if not is_sure:
        confirm_call(question, YES)
    _answer(server, question, YES, "Approved", as_json=as_json)


@click.command("reject", help=f"{COMMANDS['reject']}\n\n{_ARGUMENT}")
@click.argument("what")
@json_option
@with_server
def reject(server: Server, *, what: str, as_json: bool) -> None:
    question = _find_question(server, what)
    if question["purpose"] == Purpose.PROPOSAL:
        _decide(server, question, "reject")
        task = server.get(f"/api/conversations/{question['conversation_id']}")
        print_result(task, f"Rejected: {question['title']}.", as_json=as_json)
        return
    _answer(server, question, NO, "Rejected", as_json=as_json)


def _decide(server: Server, question: Any, verb: str) -> Any:
    # With the question as shown: an answer to a proposal that changed since is refused.
    body = {"question_id": question["id"]}
    return server.post(f"/api/tasks/{question['conversation_id']}/{verb}", body)


def _answer(server: Server, question: Any, text: str, verb: str, *, as_json: bool) -> None:
    path = f"/api/questions/{question['id']}/answer"
    conversation = server.post(path, {"answer": text})
    line = f"{verb}: {question['title']}. {describe_continuation(conversation, question)}".strip()
    print_result(conversation, line, as_json=as_json)


def _find_question(server: Server, reference: str) -> Any:
    """Find the one open question that is meant, if yes and no answer it."""
    if not reference.strip(" _"):
        raise BadRequest("Nothing given.", hint="Use a name, an id, or the start of an id.")
    asked = list(server.items("/api/questions"))
    found = [one for one in asked if reference in (one["id"], one["conversation_id"])]
    if not found:
        found = id_prefix.select_named(reference, asked, "title")
        begun = [one for one in asked if _begins(one["id"], reference)]
        begun = begun or [one for one in asked if _begins(one["conversation_id"], reference)]
        others = [one for one in begun if one not in found]
        if found and others:
            raise _several([*found, *others])
        found = found or begun
    answerable = [one for one in found if {YES, NO} <= set(one["options"])]
    if len(answerable) == 1:
        return answerable[0]
    if answerable:
        raise _several(answerable)
    if found:
        answer = f"`backburner answer {short_id(found[0]['id'])} TEXT`"
        raise BadRequest("This question is not answered by yes or no.", hint=f"Use {answer}.")
    raise _nothing_asked(server, reference)


def _begins(full_id: str, reference: str) -> bool:
    typed = reference.removeprefix(f"{full_id.partition('_')[0]}_")
    return len(typed) >= MIN_PREFIX_CHARS and id_prefix.matches(full_id, reference)


def _several(questions: Sequence[Any]) -> BadRequest:
    names = ", ".join(f"{one['id']} ({truncate(one['title'])})" for one in questions)
    return BadRequest(f"Several questions match: {names}.", hint="Use the whole id of one.")


def _nothing_asked(server: Server, reference: str) -> Conflict | NotFound:
    work = chain(
        (_named(task, "name") for task in server.items("/api/tasks")),
        (_named(task, "name") for task in server.items("/api/tasks", status="done")),
        (_named(job, "description") for job in server.items("/api/jobs")),
    )
    known: Sequence[Any] = [
        one
        for one in work
        if _begins(one["id"], reference) or one["name"].casefold() == reference.strip().casefold()
    ]
    if known:
        return Conflict(f"{known[0]['name']!r} waits for no approval.")
    return NotFound(
        f"No open question, task or job is named {reference} or has an id that starts with it.",
        hint="List what waits for you: `backburner questions`.",
    )


def _named(item: Any, name: str) -> dict[str, str]:
    return {"id": item["id"], "name": item[name]}
