"""A tool call that somebody opens: what it was asked with, what it gave, and its files."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from backburner.ports import ToolCallRow
from backburner.web.markdown.characters import clean_source, escape_code
from backburner.web.rendering import load_words
from backburner.web.views.exact_text import ExactText, show_exact, write_call
from backburner.web.views.thread_items import ShownFile, show_files

#: Of arguments and of a result; the rest is shown on request.
MAX_CHARS = 10_000
#: With a code for each hidden character it becomes longer.
_EXACT_CHARS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDetails:
    id: str
    asked: ExactText
    gave: Markup
    has_result: bool
    is_unsure: bool
    failed: bool
    #: How much of it is shown; empty: all.
    cut: str
    files: Sequence[ShownFile]


def show_details(call: ToolCallRow, *, whole: bool = False) -> CallDetails:
    words = load_words().run
    written = write_call(
        {
            "tool": call.tool,
            "server": call.server,
            "arguments": call.arguments,
            "connection": call.server not in ("", "backburner"),
        }
    )
    result = _indent(clean_source(call.result or ""))
    limit = max(len(written), len(result)) if whole else MAX_CHARS
    length = len(written) + len(result)
    shown = min(len(written), limit) + min(len(result), limit)
    cut = words.cut.format(shown=f"{shown:,}", all=f"{length:,}") if shown < length else ""
    return CallDetails(
        id=call.id,
        asked=_show_asked(written[:limit]),
        gave=Markup(escape_code(result[:limit])),  # noqa: S704 (escaped)
        has_result=call.result is not None,
        is_unsure=call.state == "unknown",
        failed=call.failed,
        cut=cut,
        files=show_files(call.files),
    )


def _show_asked(written: str) -> ExactText:
    if len(written) <= _EXACT_CHARS:
        return show_exact(written)
    return ExactText(Markup(escape_code(clean_source(written))), 0, 0)  # noqa: S704 (escaped)


def _indent(text: str) -> str:
    """Write JSON in one long line over several."""
    if not text.startswith(("{", "[")) or "\n" in text.strip():
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
