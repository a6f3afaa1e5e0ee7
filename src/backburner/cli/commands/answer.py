"""`backburner answer`: settles a question."""

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.output import say_json
from backburner.cli.server_options import shows, talks


@click.command("answer")
@click.argument("question")
@click.argument("words", nargs=-1, required=True)
@shows
@talks
def command(server: Server, *, question: str, words: tuple[str, ...], in_json: bool) -> None:
    """Answer a question: any beginning of its id will do, then the answer."""
    which = id_prefix.question(server, question)
    done = server.post(f"/api/questions/{which}/answer", {"answer": " ".join(words)})
    if in_json:
        say_json(done)
    else:
        click.echo("Answered.")
