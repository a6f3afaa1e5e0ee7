"""Questions of agents, as people read them, and how to answer them."""

import re
import shlex
from typing import Any

from backburner.cli.command_name import name_commands
from backburner.cli.output import printable, short_id

#: A type and a purpose of questions in the API. Their enumerations would import the rules of
#: conversations.
CHOICE, RECONNECT = "choice", "reconnect"
_PLAIN_WORDS = re.compile(r"[\w .,:+-]+")


def list_options(question: Any) -> list[str]:
    """List the options, with the numbers that a choice is answered by."""
    if question["type"] != CHOICE:
        return list(question["options"])
    return [f"{number} {option}" for number, option in enumerate(question["options"], 1)]


def show_question(question: Any) -> str:
    """Show the prompt and the options, one per line."""
    options = [f"  {option.replace(' ', '  ', 1)}" for option in list_options(question)]
    return printable("\n".join([question["prompt"], *options]))


def how_to_answer(question: Any) -> str:
    """Name the command that answers a question, with its first option and the others."""
    if question["purpose"] == RECONNECT:
        name, short = question["binds_to"]["name"], short_id(question["id"])
        text = f"sign in with `backburner connect {name}`, or stop it with `backburner answer"
        return printable(name_commands(f"{text} {short} stop`"))
    first, *others = question["options"] or ["..."]
    command = name_commands(f"`backburner answer {short_id(question['id'])}")
    also = f" (or {', '.join(map(_in_list, others))})" if others else ""
    return printable(f"answer with {command} {_as_typed(first)}`{also}")


def _as_typed(option: str) -> str:
    """Quote what a shell would not take for words: agents and servers write options."""
    return option if _PLAIN_WORDS.fullmatch(option) else shlex.quote(option)


def _in_list(option: str) -> str:
    return f'"{option}"' if "," in option else option
