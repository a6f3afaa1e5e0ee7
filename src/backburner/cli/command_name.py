"""The name that this program was started by: texts for people name its commands with it."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

#: Set by programs that start this one, such as `dev.py`.
COMMAND_VARIABLE = "BACKBURNER_COMMAND"
PLAIN_NAME = "backburner"
#: A command in a text; the backtick tells it from the name of the product.
_QUOTED = re.compile(rf"`{PLAIN_NAME}(?= [a-z])")


def command_name() -> str:
    """Return how to call this program in the same way again."""
    if stated := os.environ.get(COMMAND_VARIABLE):
        return stated
    started = Path(sys.argv[0])
    if started.name == "__main__.py" and started.parent.name == PLAIN_NAME:
        return f"{shlex.quote(sys.executable)} -m {PLAIN_NAME}"
    found = shutil.which(PLAIN_NAME)
    is_on_path = found is not None and started.exists() and started.samefile(found)
    return PLAIN_NAME if started.name != PLAIN_NAME or is_on_path else shlex.quote(sys.argv[0])


def program_path() -> str:
    """Return the name or path that other programs can start this one by, from any folder."""
    script = Path(sys.executable).with_name(PLAIN_NAME)
    is_installed = command_name() == PLAIN_NAME or not script.exists()
    return PLAIN_NAME if is_installed else str(script)


def name_commands(text: str) -> str:
    """Replace the program's name in quoted commands by the one it was started with.

    Only for texts of the program itself: what agents and users wrote is shown as it is.
    """
    return _QUOTED.sub(lambda _: f"`{command_name()}", text)
