"""The demo engine: reads messages, calls tools through the gate, ends its turn."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from backburner.core.conversation import State, make_title
from backburner.core.question import NO, Purpose
from backburner.core.run import Item, ItemKind, RunKind
from backburner.engine.demo import files, sentences
from backburner.engine.demo.sentences import (
    AskWhether,
    Meaning,
    Order,
    PickName,
    Remind,
    Stop,
    Talk,
    TellTime,
    WatchFile,
)
from backburner.ports import EngineEvent, Gate, TextDelta, ToolResult, TurnEnded, TurnRequest

HELP = """\
I am a demo without a language model: I understand a handful of sentences and nothing else.

- remind me in 20 seconds to stretch
- every 10 seconds check the file notes.txt and tell me when it changes
- every 3 seconds ask me whether to go on
- every minute tell me the time, stop after three times
- pick a name for my new cat, but ask me first
- what are you working on?
- stop

For a real model, run `{command} setup`, or set one up on the page, in Settings under Model."""
#: How results of `schedule_work` begin and end.
SCHEDULED_HERE, ACTIVE = "Scheduled as the work of this conversation, ", " It is active."
NO_TIME = "When? Say, for example: remind me in 20 seconds to stretch."
CANNOT = (
    "I am a demo without a language model, and I do not know how to do this: “{prompt}”. I have"
    " done nothing, and this task ends here. Set up a real model on the page, in Settings"
    " under Model, or with `{command} setup`. Then ask again."
)
MAX_QUOTE_CHARS = 200
#: In `state.data`: the last snapshot of the watched file, and how often limited work was done.
SNAPSHOT_KEY, TIMES_KEY = "demo_file", "demo_times"
NAMES = ("Miso", "Pixel", "Olive")
LAST_TIME = "That was the last of {limit}, so I stop here."
_IT_IS = re.compile(r"^It is \w+ \d\d \w+ \d{4}, (\d\d:\d\d) \(", re.MULTILINE)
_TALK = {
    Talk.THANKS: "You are welcome.",
    Talk.ANSWER: "There is no open question here.",
}


class DemoEngine:
    """Needs no key, no network and no session: all its state is in the conversation.

    `command` is how the user calls this program: what an agent writes is shown as it is.
    """

    def __init__(self, command: str) -> None:
        self._command = command

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        agent = _Agent(request, gate, self._command)
        try:
            if request.kind is RunKind.BACKGROUND:
                yield TurnEnded("", await agent.work())
                return
            answer = await agent.reply()
        except _TurnEnds:
            return
        for word in re.findall(r"\s*\S+", answer):
            yield TextDelta(word)
        yield TurnEnded(answer)


class _TurnEnds(Exception):
    """A tool call asked for the end of the turn."""


class _Agent:
    """One turn."""

    def __init__(self, request: TurnRequest, gate: Gate, command: str) -> None:
        self._request = request
        self._gate = gate
        self._command = command
        self._help = HELP.format(command=command)
        self._offers = {offer.tool.name: offer for offer in request.tools}

    async def reply(self) -> str:
        """Answer every sentence, in order."""
        texts = [sentence for text in self._messages() for sentence in sentences.split(text)]
        parsed = [(sentence, sentences.read(sentence)) for sentence in texts]
        several = sum(isinstance(meaning, Order) for _, meaning in parsed) > 1
        # Greetings are answered only if there is nothing else to answer.
        parsed = [pair for pair in parsed if pair[1] not in (Talk.HELLO, Talk.THANKS)] or parsed
        if parsed and all(meaning is None for _, meaning in parsed):
            return self._help
        parts = [
            self._acknowledge(item) for item in self._request.items if item.kind is not _MESSAGE
        ]
        parts += [await self._answer(*pair, several=several) for pair in parsed]
        return "\n\n".join(parts) or self._help

    async def work(self) -> Mapping[str, Any]:
        """Do the work that is due, and return its outcome."""
        prompt = next(reversed(self._messages()), str(self._state.context.get("prompt", "")))
        outcome = await self._do(prompt)
        limit = sentences.read_limit(prompt)
        return outcome if limit is None else self._count(outcome, limit)

    async def _do(self, prompt: str) -> Mapping[str, Any]:
        match sentences.read_work(prompt):
            case Remind(text):
                return self._tell(text)
            case TellTime():
                return self._tell(f"It is {self._read_clock()}.")
            case PickName(named):
                return self._pick(named)
            case AskWhether(question):
                return self._ask(question)
            case WatchFile(path):
                return await self._watch(path)
            case None:
                message = CANNOT.format(prompt=_quote(prompt), command=self._command)
                return {"complete": True, "final": True, "message": message}

    async def _answer(self, sentence: str, meaning: Meaning | None, *, several: bool) -> str:
        match meaning:
            case Order(prompt, when):
                return await self._schedule(prompt, when, several=several)
            case Stop(work):
                return (await self._call("stop_work", {"name": work} if work else {})).text
            case Talk.LIST:
                return (await self._call("list_work", {})).text
            case None:
                return f"I did not understand “{_quote(sentence)}”. Say `help` to see what I do."
            case Talk.HELP:
                return self._help
            case Talk.HELLO:
                return f"Hello! {self._help}"
            case _:
                return _TALK[meaning]

    async def _schedule(self, prompt: str, when: str, *, several: bool) -> str:
        if not when:
            return NO_TIME
        work = {
            "what": prompt,
            "when": when,
            "title": make_title(prompt.rstrip(".")),
            "notify": "always",
        }
        result = await self._call("schedule_work", work | ({"separate": True} if several else {}))
        if result.failed:
            return f"I could not do that. {result.text}"
        # A tool tells agents more than people need to hear.
        told = result.text.removeprefix(SCHEDULED_HERE).removesuffix(ACTIVE)
        return f"All right. {told[:1].upper()}{told[1:]}"

    def _tell(self, text: str) -> Mapping[str, Any]:
        # The count makes every result new, so that each one is reported.
        count = self._request.conversation.run_count + 1
        return {"complete": True, "message": text, "result": count}

    def _read_clock(self) -> str:
        """Read the user's time where a model reads it."""
        found = _IT_IS.search(self._request.prompt)
        return found[1] if found else "time"

    def _pick(self, named: str) -> Mapping[str, Any]:
        answer = self._last_answer()
        if answer is None:
            prompt = f"Which name for {named}?"
            choice = {"type": "choice", "prompt": prompt, "options": list(NAMES)}
            return {"needs_input": True, "message": prompt, "question": choice}
        message = f"{named[:1].upper()}{named[1:]} is called {answer}."
        return {"complete": True, "final": True, "message": message}

    def _count(self, outcome: Mapping[str, Any], limit: int) -> Mapping[str, Any]:
        """Count what was done; the last time ends the work."""
        if not outcome.get("complete") or outcome.get("final"):
            return outcome
        before = self._state.data.get(TIMES_KEY)
        number = (before if isinstance(before, int) else 0) + 1
        update = {**outcome.get("state_update", {}), TIMES_KEY: number}
        if number < limit:
            return {**outcome, "state_update": update}
        last = LAST_TIME.format(limit=limit)
        message = " ".join([*filter(None, [outcome.get("message")]), last])
        return {**outcome, "state_update": update, "final": True, "message": message}

    def _ask(self, question: str) -> Mapping[str, Any]:
        answer = self._last_answer()
        if answer is None:
            confirmation = {"type": "confirmation", "prompt": question}
            return {"needs_input": True, "message": question, "question": confirmation}
        if answer == NO:
            return {"complete": True, "final": True, "message": "All right, I stop here."}
        if self._request.conversation.is_recurring:
            return {"complete": True}
        return {"complete": True, "message": "You said yes, so I am done."}

    async def _watch(self, path: str) -> Mapping[str, Any]:
        now = files.take_snapshot(await self._call("read_file", {"path": path}))
        before = files.from_state(self._state.data.get(SNAPSHOT_KEY), path)
        message = files.describe_change(before, now, path)
        if message is None and self._is_report_expected():
            message = f"{path} has not changed." if before else files.describe(now, path)
        report = {} if message is None else {"message": message}
        stored = files.to_state(now, path)
        update = {SNAPSHOT_KEY: stored}
        return {"complete": True, "result": stored["digest"], "state_update": update, **report}

    def _is_report_expected(self) -> bool:
        """Return whether the user waits for a report, even if nothing changed."""
        requested = any(item.kind is ItemKind.RUN_NOW for item in self._request.items)
        return requested or not self._request.conversation.is_recurring

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        offer = self._offers.get(name)
        if offer is None:
            return ToolResult(f"The tool {name} is not available here.", failed=True)
        result = await self._gate.call(offer, arguments)
        if result.stop:
            raise _TurnEnds
        return result

    def _messages(self) -> Sequence[str]:
        items = (item for item in self._request.items if item.kind is _MESSAGE)
        return [str(item.content.get("text", "")) for item in items]

    def _last_answer(self) -> str | None:
        """Return the last answer to a question of the work itself."""
        for item in reversed(self._request.items):
            if item.kind is ItemKind.ANSWER and item.content.get("purpose") == Purpose.QUESTION:
                return str(item.content.get("answer", ""))
        return None

    @staticmethod
    def _acknowledge(item: Item) -> str:
        match item.kind:
            case ItemKind.JOB_RESULT:
                outcome = "has failed" if item.content.get("failed") else "has finished"
                if item.content.get("cancelled"):
                    outcome = "was cancelled"
                return f"“{_quote(str(item.content.get('title', '')))}” {outcome}."
            case _:
                return "All right."

    @property
    def _state(self) -> State:
        return self._request.conversation.state


_MESSAGE = ItemKind.MESSAGE


def _quote(text: str) -> str:
    quoted = " ".join(text.split())
    return quoted if len(quoted) <= MAX_QUOTE_CHARS else f"{quoted[:MAX_QUOTE_CHARS]}…"
