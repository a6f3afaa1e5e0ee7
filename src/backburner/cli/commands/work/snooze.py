"""`backburner snooze`."""

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.output import print_result
from backburner.cli.server_options import json_option, with_server


@click.command("snooze")
@click.argument("question")
@click.argument("duration", metavar="TIME")
@json_option
@with_server
def snooze(server: Server, *, question: str, duration: str, as_json: bool) -> None:
    """Put off the reminder of a question.

    QUESTION is its id, or the start of it. TIME is a duration such as 1h or "2 days".
    """
    question_id = id_prefix.find_question(server, question)
    result = server.post(f"/api/questions/{question_id}/snooze", {"for": duration})
    print_result(result, f"Snoozed for {duration}.", as_json=as_json)
