"""`backburner completion`: shell completion of commands and options."""

import click
from click.shell_completion import get_completion_class

from backburner.cli.main import COMPLETE_VARIABLE, backburner

_INSTALLATION = """\b
To install it:
  bash   backburner completion bash > \\
           ~/.local/share/bash-completion/completions/backburner
  zsh    backburner completion zsh > DIR/_backburner, with DIR in your fpath
  fish   backburner completion fish > \\
           ~/.config/fish/completions/backburner.fish"""


@click.command("completion", epilog=_INSTALLATION)
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the shell completion script.

    SHELL is bash, zsh or fish.
    """
    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"{shell} is not supported.")
    click.echo(script(backburner, {}, "backburner", COMPLETE_VARIABLE).source())
