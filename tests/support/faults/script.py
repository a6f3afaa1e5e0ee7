"""What an agent in another process is to do, written into its work.

The prompt of a task, or a message, is `SCRIPT` and a list of steps in JSON; the agent finds it in
whatever it is told.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from backburner.ports import TurnRequest
from support.doubles.engine import Call, End, Ignore, Say, Sleep, Spend, Step

MARK = "SCRIPT "
#: What stands before the words of a user in a prompt.
SAID = f"The user says: {MARK}"


def write(*steps: Step) -> str:
    return MARK + json.dumps([_to_json(step) for step in steps])


def read(request: TurnRequest) -> Iterable[Step]:
    """Find what is to be done; nothing where the agent only goes on with what it remembers."""
    scripts = [found for line in request.prompt.splitlines() for found in _scripts(line)]
    if not scripts and request.schema is None:
        return [Say("That was all.")]
    return [_from_json(step) for found in scripts for step in json.loads(found)]


def _scripts(line: str) -> Iterator[str]:
    if line.startswith(SAID):
        yield line.removeprefix(SAID)
    elif line.startswith("{"):
        # What the work is for stands in one line of JSON.
        prompt = str(json.loads(line).get("prompt", ""))
        if prompt.startswith(MARK):
            yield prompt.removeprefix(MARK)


def _to_json(step: Step) -> Mapping[str, Any]:
    match step:
        case Say(text):
            return {"say": text}
        case Call(tool, arguments):
            return {"call": tool, "arguments": dict(arguments)}
        case Spend(tokens):
            return {"spend": tokens}
        case Sleep(seconds):
            return {"sleep": seconds}
        case Ignore(seconds):
            return {"ignore": seconds}
        case End(outcome):
            return {"end": outcome}
        case _:
            raise TypeError(f"{step} means nothing to another process.")


def _from_json(written: Mapping[str, Any]) -> Step:
    match written:
        case {"say": text}:
            return Say(text)
        case {"call": tool, "arguments": arguments}:
            return Call(tool, arguments)
        case {"spend": tokens}:
            return Spend(tokens)
        case {"sleep": seconds}:
            return Sleep(seconds)
        case {"ignore": seconds}:
            return Ignore(seconds)
        case {"end": outcome}:
            return End(outcome)
        case _:
            raise ValueError(f"{written} is no step.")
