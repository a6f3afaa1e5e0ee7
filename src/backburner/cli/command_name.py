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
#: The end of a text that may become a quoted command.
_UNFINISHED = re.compile(rf"`(?:{PLAIN_NAME} ?|[a-r]{{0,{len(PLAIN_NAME)}}})$")


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
    """Let the commands that a text quotes begin with the name of this program."""
    return _QUOTED.sub(lambda _: f"`{command_name()}", text)


def split_unfinished(text: str) -> tuple[str, str]:
    """Split off the end of a text that still arrives, if it may begin a quoted command."""
    found = _UNFINISHED.search(text)
    return (text, "") if found is None else (text[: found.start()], text[found.start() :])
