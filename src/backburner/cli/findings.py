"""The findings of `backburner doctor`, printed as lines or as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from backburner.cli.command_name import name_commands


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"  #: Worth knowing, but it works.
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    message: str
    level: Level = Level.OK
    #: The exact step that fixes it.
    hint: str = ""


def all_ok(findings: Sequence[Finding]) -> bool:
    return all(finding.level is not Level.PROBLEM for finding in findings)


def as_lines(findings: Sequence[Finding]) -> list[str]:
    marks = {Level.OK: "[ok]", Level.NOTE: "[--]", Level.PROBLEM: "[!!]"}
    width = max((len(finding.check) for finding in findings), default=0)
    lines = (
        f"{marks[finding.level]} {finding.check:<{width}}  {finding.message} {finding.hint}"
        for finding in findings
    )
    return [name_commands(line.rstrip()) for line in lines]


def as_json(findings: Sequence[Finding]) -> str:
    content = {"ok": all_ok(findings), "findings": [asdict(finding) for finding in findings]}
    return json.dumps(content, indent=2, ensure_ascii=False)
