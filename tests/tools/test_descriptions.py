"""Tool texts: pinned by a snapshot, usable by any model, and of limited size."""

import json
import re
from pathlib import Path

from support.cases.tool_texts import FILE, all_offers, collect

import backburner

#: About how many characters make a token, and how many tokens all our tools may take together.
CHARACTERS_IN_TOKEN = 4
MOST_TOKENS = 6_050
#: What stands where a model's server looks no further, or not every one does.
DIFFICULT = ("$ref", "$defs", "oneOf", "allOf")


def test_tool_texts_match_the_snapshot() -> None:
    """If the change is meant: `python tests/support/cases/tool_texts.py`."""
    assert collect() == json.loads(FILE.read_text(encoding="utf-8"))


def test_all_tools_together_take_little_of_a_context() -> None:
    read = [[one.tool.name, one.description, dict(one.parameters)] for one in all_offers()]
    size = len(json.dumps(read, ensure_ascii=False, separators=(",", ":")))

    assert size / CHARACTERS_IN_TOKEN < MOST_TOKENS


def test_every_tool_and_every_argument_can_be_used_by_any_model() -> None:
    offers = all_offers()
    names = [one.tool.name for one in offers]
    assert len(set(names)) == len(names)
    for one in offers:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", one.tool.name)
        assert one.description.endswith("."), one.tool.name
        assert one.parameters["type"] == "object", one.tool.name
        assert not one.parameters["additionalProperties"], one.tool.name
        written = json.dumps(dict(one.parameters))
        assert not [sign for sign in DIFFICULT if f'"{sign}"' in written], one.tool.name


def test_hints_that_people_see_too_name_no_tools() -> None:
    """Actions answer agents, the API and the command line alike."""
    names = "|".join(one.tool.name for one in all_offers())
    pattern = re.compile(rf'hint(?:=|_HINT = )f?"[^"]*\b(?:{names})\b', re.IGNORECASE)
    package = Path(backburner.__file__).parent
    found = {
        str(path.relative_to(package)): match[0]
        for room in ("actions", "core")
        for path in (package / room).rglob("*.py")
        if (match := pattern.search(path.read_text(encoding="utf-8")))
    }

    # It refuses agents only.
    assert set(found) == {"actions/work/conversation_work.py"}, found
