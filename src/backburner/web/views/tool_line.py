"""Tool calls as quiet lines: an icon by kind, words, the name, and how long it took."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner.core.work.activity import CallSummary
from backburner.ports import ShownCall
from backburner.web.display import format_duration
from backburner.web.rendering import load_words

MAX_SUMMARY = 160
#: A shorter time is left out.
_SHORTEST_TIME = timedelta(milliseconds=100)
#: More in a row fold.
MAX_LINES = 4
_FIRST_NAME = re.compile(r"^(?:path|url|text|query|key)=")
_CONTENT = re.compile(r" content=.*$")
_ICONS = {
    "run_command": "terminal",
    "run_signed_in": "key",
    "read_file": "file",
    "read_result": "file",
    "write_file": "pencil",
    "list_files": "folder",
    "fetch_url": "globe",
    "hand_over": "download",
    "report_progress": "bulb",
}
_PREFIX_ICONS = {
    "task_": "calendar",
    "schedule_": "clock",
    "stop_": "clock",
    "background_": "branch",
    "memory_": "bulb",
}
#: The arguments that say what a call of ours is about: of each group the first that is short.
_TELLING = {
    "schedule_work": (("what", "title"), ("when",)),
    "task_add": (("name",), ("when",)),
    "task_propose": (("name",), ("when",)),
    "background_task": (("description",),),
    "memory_set": (("key",), ("text",)),
}
_ARGUMENT = re.compile(r"(?:^| )(\w+)=")
#: A summary only counts what is long.
_COUNTED = re.compile(r"\([\d,]+ characters\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLine:
    id: str
    icon: str
    text: str
    name: str
    state: str
    took: str


def show_call(made: ShownCall, now: datetime) -> ToolLine:
    words = load_words().tools
    call, server = made.call, made.server
    state = _state(call)
    is_known = call.tool in words.known
    name = _tell(call.tool, call.summary) if call.tool in _TELLING else _shorten(call.summary)
    if not is_known:
        text = words.used if state != "running" else words.uses
        is_own = server in ("", "backburner")
        name = call.tool if is_own else f"{server}.{call.tool}"
    else:
        text = words.known[call.tool]["now" if state == "running" else "done"]
    ended = call.ended_at or (now if state == "running" else None)
    time = (ended or call.started_at) - call.started_at
    took = format_duration(time) if time >= _SHORTEST_TIME else ""
    return ToolLine(
        id=call.id,
        icon=find_icon(call.tool, server),
        text=text,
        name=name,
        state=state,
        took=words.failed if state == "failed" else took,
    )


def _shorten(summary: str) -> str:
    """Leave out what the words say already: that it is a path, and that it has content."""
    return _CONTENT.sub("", _FIRST_NAME.sub("", summary))[:MAX_SUMMARY]


def _tell(tool: str, summary: str) -> str:
    """Say what a call is about, without the names of its arguments."""
    _, *pieces = _ARGUMENT.split(summary)
    values = dict(zip(pieces[::2], pieces[1::2], strict=True))
    short = {name: value for name, value in values.items() if not _COUNTED.fullmatch(value)}
    told = (next((short[name] for name in group if name in short), "") for group in _TELLING[tool])
    return " · ".join(filter(None, told))[:MAX_SUMMARY]


def describe_call(call: CallSummary, now: datetime) -> str:
    """Say in a line what a call does, for which the name of its server is not known."""
    line = show_call(ShownCall("", call), now)
    return f"{line.text} {line.name}".strip()


def find_icon(tool: str, server: str) -> str:
    if tool in _ICONS:
        return _ICONS[tool]
    for prefix, icon in _PREFIX_ICONS.items():
        if tool.startswith(prefix):
            return icon
    return "plug" if server else "tool"


def _state(call: CallSummary) -> str:
    if call.failed:
        return "failed"
    if call.state == "unknown":
        return "waiting"
    return "running" if call.ended_at is None else "done"
