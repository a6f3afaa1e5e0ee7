"""What `backburner doctor` finds, in lines for people or as JSON for scripts."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum


class Mark(StrEnum):
    OK = "ok"
    NOTE = "note"  #: Worth knowing; it works as it is.
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    words: str
    mark: Mark = Mark.OK
    #: Exactly what to do about it.
    hint: str = ""


def is_well(findings: Sequence[Finding]) -> bool:
    return all(finding.mark is not Mark.BROKEN for finding in findings)


def as_lines(findings: Sequence[Finding]) -> list[str]:
    signs = {Mark.OK: "[ok]", Mark.NOTE: "[--]", Mark.BROKEN: "[!!]"}
    width = max((len(finding.what) for finding in findings), default=0)
    return [
        f"{signs[one.mark]} {one.what:<{width}}  {one.words} {one.hint}".rstrip()
        for one in findings
    ]


def as_json(findings: Sequence[Finding]) -> str:
    content = {"ok": is_well(findings), "findings": [asdict(one) for one in findings]}
    return json.dumps(content, indent=2, ensure_ascii=False)
