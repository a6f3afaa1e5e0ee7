"""The demo as an engine: reads what was said, calls tools through the gate, ends its turn."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from backburner.core.conversation import State, make_title
from backburner.core.question import NO, Purpose
from backburner.core.run import Item, ItemKind, RunKind
from backburner.engine.demo import files, sentences
from backburner.engine.demo.sentences import AskWhether, Meaning, Order, Remind, Stop, Talk, Watch
from backburner.ports import EngineEvent, Gate, TextDelta, ToolResult, TurnEnded, TurnRequest

HELP = """\
I am a demo without a language model: I understand a handful of sentences and nothing else.

- remind me in 20 seconds to stretch
- every 10 seconds check the file notes.txt and tell me when it changes
- every 3 seconds ask me whether to go on
- what are you working on?
- stop

To talk to a real model, run `backburner setup`."""
NO_TIME = "When? Say, for example: remind me in 20 seconds to stretch."
CANNOT = (
    "I am a demo without a language model, and I do not know how to do this: “{}”. I have done"
    " nothing, and it ends here. Run `backburner setup` to set up a real model, then ask again."
)
LONGEST_QUOTE = 200
#: In `state.data`.
LOOK = "demo_file"
_TALK = {
    Talk.HELP: HELP,
    Talk.HELLO: f"Hello! {HELP}",
    Talk.THANKS: "You are welcome.",
    Talk.ANSWER: "There is no open question here.",
}


class DemoEngine:
    """No key, no network, no memory: all it knows is in the conversation."""

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        agent = _Agent(request, gate)
        try:
            if request.kind is RunKind.BACKGROUND:
                yield TurnEnded("", await agent.work())
                return
            answer = await agent.reply()
        except _Stopped:
            return
        for word in re.findall(r"\s*\S+", answer):
            yield TextDelta(word)
        yield TurnEnded(answer)


class _Stopped(Exception):
    """The turn is to end without another word."""


class _Agent:
    """For one turn."""

    def __init__(self, request: TurnRequest, gate: Gate) -> None:
        self._request = request
        self._gate = gate
        self._offers = {offer.tool.name: offer for offer in request.tools}

    async def reply(self) -> str:
        """Answer everything that was said, in the order in which it was."""
        said = [sentence for text in self._said() for sentence in sentences.split(text)]
        read = [(sentence, sentences.read(sentence)) for sentence in said]
        several = sum(isinstance(meaning, Order) for _, meaning in read) > 1
        # Greetings are answered where there is nothing else to be.
        meant = [one for one in read if one[1] not in (Talk.HELLO, Talk.THANKS)] or read
        if meant and all(meaning is None for _, meaning in meant):
            return HELP
        parts = [self._tell(item) for item in self._request.items if item.kind is not _MESSAGE]
        parts += [await self._answer(*one, several=several) for one in meant]
        return "\n\n".join(parts) or HELP

    async def work(self) -> Mapping[str, Any]:
        """Do what is due, and say how it ended."""
        brief = next(reversed(self._said()), str(self._state.context.get("prompt", "")))
        match sentences.read_work(brief):
            case Remind(saying):
                # By the count, so that the same words are news each time.
                count = self._request.conversation.run_count + 1
                return {"complete": True, "message": saying, "result": count}
            case AskWhether(question):
                return self._ask(question)
            case Watch(path):
                return await self._watch(path)
            case None:
                message = CANNOT.format(_quote(brief))
                return {"complete": True, "final": True, "message": message}

    async def _answer(self, sentence: str, meaning: Meaning | None, *, several: bool) -> str:
        match meaning:
            case Order(what, when):
                return await self._schedule(what, when, several=several)
            case Stop(which):
                return (await self._call("stop_work", {"which": which} if which else {})).text
            case Talk.LOOK:
                return (await self._call("list_work", {})).text
            case None:
                return f"I did not understand “{_quote(sentence)}”. Say `help` to see what I do."
            case _:
                return _TALK[meaning]

    async def _schedule(self, what: str, when: str, *, several: bool) -> str:
        if not when:
            return NO_TIME
        wish = {
            "what": what,
            "when": when,
            "title": make_title(what.rstrip(".")),
            "notify": "always",
        }
        result = await self._call("schedule_work", wish | ({"separate": True} if several else {}))
        return f"{'I could not do that.' if result.failed else 'All right.'} {result.text}"

    def _ask(self, question: str) -> Mapping[str, Any]:
        answer = self._last_answer()
        if answer is None:
            asked = {"type": "confirmation", "prompt": question}
            return {"needs_input": True, "message": question, "question": asked}
        if answer == NO:
            return {"complete": True, "final": True, "message": "All right, I stop here."}
        if self._request.conversation.is_recurring:
            return {"complete": True}
        return {"complete": True, "message": "You said yes, and that was all."}

    async def _watch(self, path: str) -> Mapping[str, Any]:
        now = files.look_at(await self._call("read_file", {"path": path}))
        before = files.from_state(self._state.data.get(LOOK), path)
        message = files.tell_change(before, now, path)
        if message is None and self._is_asked_for():
            message = f"{path} has not changed." if before else files.describe(now, path)
        told = {} if message is None else {"message": message}
        kept = files.to_state(now, path)
        return {"complete": True, "result": kept["digest"], "state_update": {LOOK: kept}, **told}

    def _is_asked_for(self) -> bool:
        """See whether somebody waits for word of this run, whatever it finds."""
        now = any(item.kind is ItemKind.RUN_NOW for item in self._request.items)
        return now or not self._request.conversation.is_recurring

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        offer = self._offers.get(name)
        if offer is None:
            return ToolResult(f"I am not given the tool {name} here.", failed=True)
        result = await self._gate.call(offer, arguments)
        if result.stop:
            raise _Stopped
        return result

    def _said(self) -> Sequence[str]:
        items = (item for item in self._request.items if item.kind is _MESSAGE)
        return [str(item.content.get("text", "")) for item in items]

    def _last_answer(self) -> str | None:
        """Find the answer to what the work itself asked."""
        for item in reversed(self._request.items):
            if item.kind is ItemKind.ANSWER and item.content.get("purpose") == Purpose.QUESTION:
                return str(item.content.get("answer", ""))
        return None

    @staticmethod
    def _tell(item: Item) -> str:
        match item.kind:
            case ItemKind.JOB_RESULT:
                ended = "has failed" if item.content.get("failed") else "has finished"
                return f"“{_quote(str(item.content.get('title', '')))}” {ended}."
            case _:
                return "All right."

    @property
    def _state(self) -> State:
        return self._request.conversation.state


_MESSAGE = ItemKind.MESSAGE


def _quote(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_QUOTE else f"{words[:LONGEST_QUOTE]}…"
