"""`backburner completion`: what lets a shell complete commands and options."""

import click
from click.shell_completion import get_completion_class

from backburner.cli.main import backburner

_HOW = """\b
Put it where your shell looks for it:
  bash   backburner completion bash > ~/.local/share/bash-completion/completions/backburner
  zsh    backburner completion zsh > a file _backburner in a folder of your fpath
  fish   backburner completion fish > ~/.config/fish/completions/backburner.fish"""


@click.command("completion", epilog=_HOW)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print what lets your shell complete commands."""
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"Nothing is known of {shell}.")
    click.echo(found(backburner, {}, "backburner", "_BACKBURNER_COMPLETE").source())
