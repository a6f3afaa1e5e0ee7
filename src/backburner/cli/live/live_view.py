"""A live view of work: the text of replies, tool calls, questions, and the ends of runs.

Events say where something changed, and the view fetches what it has not shown yet.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

import click

from backburner.cli.client import PAGE_SIZE, NoServer, NotSignedIn
from backburner.cli.live.attachment_text import describe_attachments
from backburner.cli.live.event_reader import CONNECTED, LOST
from backburner.cli.live.question_text import how_to_answer
from backburner.cli.output import printable, short_id, truncate
from backburner.cli.server_options import FindServer
from backburner.core.errors import MachineFailed, NotFound

#: Messages and runs of a conversation that are looked at after a change.
NEWEST = 10
#: Of the conversation at the beginning of each line.
MAX_TITLE_CHARS = 32


class EventLines:
    """Prints the events themselves, one per line, for scripts."""

    is_busy = False

    def __init__(self, _find_server: FindServer, conversation_id: str | None) -> None:
        self._conversation_id = conversation_id

    def begin(self) -> None:
        """Print nothing yet: events say what happens from now on."""

    def refresh(self) -> None:
        """Print nothing: tool calls are no events."""

    def show(self, name: str, data: Any) -> None:
        fields = data if isinstance(data, dict) else {"detail": data}
        if self._conversation_id in (None, fields.get("conversation", self._conversation_id)):
            click.echo(json.dumps({"event": name, **fields}))


class LiveView:
    """Shows one conversation, or everything of the user."""

    def __init__(self, find_server: FindServer, conversation_id: str | None) -> None:
        self._find_server = find_server
        self._server = find_server()
        self._conversation_id = conversation_id
        self._titles = dict[str, str]()
        #: Runs in progress, and how many calls of each were shown.
        self._running = dict[str, Any]()
        self._calls = dict[str, int]()
        #: The last message and run of each conversation that were shown.
        self._last_message = dict[str, str]()
        self._last_run = dict[str, str]()
        self._questions = set[str]()
        self._since = datetime.min.replace(tzinfo=UTC)
        #: The text of each reply as far as it was shown, and whose text the cursor is in.
        self._drafts = dict[str, str]()
        self._writing: str | None = None
        #: Runs that have ended, though a draft of theirs may still arrive.
        self._ended = set[str]()
        #: Changes that were not shown, because the server was away.
        self._left = dict[tuple[str, str | None], None]()

    @property
    def is_busy(self) -> bool:
        """Whether something runs, whose tool calls have to be looked for."""
        return bool(self._running)

    def begin(self) -> None:
        """Show what runs now, and remember what was there before."""
        self._questions = {question["id"] for question in self._open_questions()}
        # By the clock of the server.
        self._since = datetime.fromisoformat(self._server.get("/api/away")["until"])
        self.refresh()
        if not self._running:
            self._line(None, "Nothing runs now.")

    def show(self, name: str, data: Any) -> None:
        """Show an event."""
        if name == LOST:
            self._line(None, f"{data} Waiting for the server.")
        elif name == CONNECTED:
            self._line(None, "Connected again.")
            self._left |= dict.fromkeys([("run", None)])
            self._catch_up()
        elif name == "reset":
            self._line(None, "Too much has happened meanwhile to show all of it.")
            self._left |= dict.fromkeys([("question", None), ("run", None)])
            self._catch_up()
        elif name in ("change", "draft") and self._is_wanted(data["conversation"]):
            if name == "draft":
                self._show_draft(data)
            else:
                self._left[data["kind"], data["conversation"]] = None
                self._catch_up()

    def refresh(self) -> None:
        """Show the tool calls since the last look, and runs that have begun or ended."""
        self._left["run", None] = None
        self._catch_up()

    def _is_wanted(self, conversation_id: str | None) -> bool:
        return conversation_id is not None and self._conversation_id in (None, conversation_id)

    def _catch_up(self) -> None:
        """Show what has changed; if the server is away or lets nobody in yet, later."""
        try:
            # A server that was restarted may have another address and another credential.
            self._server = self._find_server()
            for kind, conversation_id in list(self._left):
                self._show_change(kind, conversation_id)
                del self._left[kind, conversation_id]
        except (NoServer, MachineFailed, NotSignedIn):
            pass

    def _show_change(self, kind: str, conversation_id: str | None) -> None:
        try:
            if kind == "run":
                self._show_runs(conversation_id)
            elif kind == "message" and conversation_id is not None:
                self._show_messages(conversation_id)
            elif kind == "question":
                self._show_questions()
        except NotFound:
            # It was deleted meanwhile.
            self._running = {
                run_id: run
                for run_id, run in self._running.items()
                if run["conversation_id"] != conversation_id
            }

    def _show_runs(self, conversation_id: str | None) -> None:
        found = {
            run["id"]: run
            for run in self._server.items("/api/runs", status="running")
            if self._is_wanted(run["conversation_id"])
        }
        for run in found.values():
            self._titles[run["conversation_id"]] = run["title"]
            if run["id"] not in self._running:
                self._line(run["conversation_id"], f"started ({run['kind']})")
            self._show_calls(run, run["running"]["calls"])
        ended = [run for run_id, run in self._running.items() if run_id not in found]
        self._running = found
        places = {run["conversation_id"]: None for run in ended}
        if conversation_id is not None and not any(
            run["conversation_id"] == conversation_id for run in found.values()
        ):
            places[conversation_id] = None
        for place in places:
            self._show_ends(place)

    def _is_new(self, timestamp: str | None) -> bool:
        """Whether something happened after this view began; None: it has not ended."""
        return timestamp is None or datetime.fromisoformat(timestamp) > self._since

    def _show_calls(self, run: Any, count: int | None) -> None:
        """Show the calls of a run that are new; without their number, look whether there are."""
        seen = self._calls.get(run["id"], 0)
        if count is not None and count <= seen:
            return
        limit = PAGE_SIZE if count is None else count - seen
        path = f"/api/runs/{run['id']}/calls"
        calls = list(self._server.items(path, limit=limit))
        if count is None:
            calls = calls[: max(len(calls) - seen, 0)]
        self._calls[run["id"]] = seen + len(calls)
        for call in reversed(calls):
            summary = f"{call['tool']}: {call['summary']}" if call["summary"] else call["tool"]
            failed = " (failed)" if call["failed"] else ""
            self._line(run["conversation_id"], f"{summary}{failed}")

    def _show_ends(self, conversation_id: str) -> None:
        """Show the runs of a conversation that have ended since the last look."""
        path = f"/api/conversations/{conversation_id}/runs"
        known = self._last_run.get(conversation_id)
        newest = self._server.items(path, limit=NEWEST)
        fresh = list(
            takewhile(lambda run: run["id"] != known and self._is_new(run["ended_at"]), newest)
        )
        for run in reversed(fresh):
            if run["status"] == "running":
                break
            self._show_calls(run, None)
            self._show_messages(conversation_id)
            self._line(conversation_id, _describe_end(run))
            # A queued run goes on later, and ends then.
            if run["status"] == "queued":
                break
            self._last_run[conversation_id] = run["id"]
            self._ended.add(run["id"])
            self._calls.pop(run["id"], None)

    def _show_messages(self, conversation_id: str) -> None:
        path = f"/api/conversations/{conversation_id}/messages"
        known = self._last_message.get(conversation_id)
        newest = self._server.items(path, limit=NEWEST)
        fresh = list(
            takewhile(lambda one: one["id"] != known and self._is_new(one["created_at"]), newest)
        )
        for message in reversed(fresh):
            self._last_message[conversation_id] = message["id"]
            self._show_message(conversation_id, message)

    def _show_message(self, conversation_id: str, message: Any) -> None:
        content = message["content"]
        files = "\n".join(describe_attachments(message))
        run_id = message["run_id"]
        shown = self._drafts.pop(run_id, "") if message["role"] == "assistant" else ""
        if shown.strip() and content.strip() == shown.strip():
            self._end_text()
        elif shown and self._writing == run_id and content.startswith(shown):
            click.echo(printable(content.removeprefix(shown)), nl=False)
            self._end_text()
        else:
            who = {"user": "you: ", "system": "note: "}.get(message["role"], "")
            self._line(conversation_id, f"{who}{content}")
        if files:
            self._line(conversation_id, files)

    def _show_questions(self) -> None:
        for question in self._open_questions():
            if question["id"] not in self._questions:
                self._questions.add(question["id"])
                asked = f"asks: {question['prompt']} ({how_to_answer(question)})"
                self._line(question["conversation_id"], asked)

    def _open_questions(self) -> Iterator[Any]:
        for question in self._server.items("/api/questions"):
            if self._is_wanted(question["conversation_id"]):
                yield question

    def _show_draft(self, draft: Any) -> None:
        """Show the new part of a reply; `at` says from where on the text replaces the old one."""
        run_id, conversation_id = draft["run"], draft["conversation"]
        if run_id in self._ended:
            return
        before = self._drafts.get(run_id, "")
        text = before[: draft["at"]] + draft["text"]
        self._drafts[run_id] = text
        goes_on = text.startswith(before)
        fresh = text.removeprefix(before)
        if fresh and not (goes_on and self._writing == run_id):
            # Calls are looked at from time to time only: those before this text come first.
            self.refresh()
            self._end_text()
            click.echo(f"[{self._title(conversation_id)}] ", nl=False)
            self._writing = run_id
        click.echo(printable(fresh), nl=False)

    def _title(self, conversation_id: str) -> str:
        if conversation_id not in self._titles:
            try:
                found = self._server.get(f"/api/conversations/{conversation_id}")
            except (NotFound, NoServer, NotSignedIn, MachineFailed):
                return short_id(conversation_id)
            self._titles[conversation_id] = found["title"]
        title = truncate(self._titles[conversation_id], MAX_TITLE_CHARS)
        return printable(title) or short_id(conversation_id)

    def _end_text(self) -> None:
        if self._writing is not None:
            click.echo()
        self._writing = None

    def _line(self, conversation_id: str | None, text: str) -> None:
        self._end_text()
        place = "" if conversation_id is None else f"[{self._title(conversation_id)}] "
        click.echo(f"{place}{printable(text)}")


def _describe_end(run: Any) -> str:
    if run["status"] == "queued":
        return f"waits ({run['kind']})"
    if run["skipped"]:
        return f"skipped: {run['skipped']['in_words']}"
    if run["failure"]:
        return f"failed ({run['kind']}): {run['failure']['message']}"
    return f"ended ({run['kind']}): {run['status']}"
