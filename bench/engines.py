"""What engines add to the time of their model, to the first words and in all; and their memory.

The model is a stand-in that answers at once, asked directly beside it. What the scripted agent and
the demo take has no model in it: it is a whole run, from what a person says to what they see.
`--quick` takes fewer samples.
"""

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from _programs import measure_memory
from _report import Cell, report
from _turns import (
    COMPLETIONS,
    MESSAGES,
    STALL,
    Sample,
    Taken,
    claude_engine,
    direct,
    model_api,
    new_turns,
    next_turns,
    through_relay,
    whole_runs,
)
from support.doubles.engine import ScriptedEngine

from backburner.engine.demo import DemoEngine
from backburner.engine.openai import OpenAIEngine

IS_QUICK = "--quick" in sys.argv[1:]
ROUNDS = 5 if IS_QUICK else 30
#: Samples in a round of what takes no program to be started.
OFTEN = 5
MOST_AT_ONCE = 4
#: What a model is sent at most, about, of a long chat.
LONG = 400_000
FIRST, WHOLE = "first", "all"


@dataclass
class Measure:
    sample: Sample
    #: The name of the one that shows what the model alone takes.
    model: str = ""
    #: Up to which point it is to add less than so many milliseconds.
    goal: tuple[str, float] | None = None
    often: int = OFTEN
    taken: list[Taken] = field(default_factory=list)

    @property
    def median(self) -> dict[str, float]:
        return {
            FIRST: median(one.first for one in self.taken) * 1e3,
            WHOLE: median(one.whole for one in self.taken) * 1e3,
        }

    async def take(self) -> None:
        self.taken += [await self.sample() for _ in range(self.often)]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bb-bench-") as folder, model_api() as address:
        asyncio.run(measure(address, Path(folder)))


async def measure(address: str, folder: Path) -> None:
    async with AsyncExitStack() as opened:
        measures = await open_all(address, folder, opened)
        for number in range(ROUNDS + 1):
            for one in measures.values():
                await one.take()
                if number == 0:
                    one.taken.clear()
    memory: dict[str, float] = {}
    for count in range(1, MOST_AT_ONCE + 1):
        memory |= await measure_memory(folder, count)
    rows = [_row(name, measures) for name in measures]
    report("engines", rows, rounds=ROUNDS, **memory)


async def open_all(address: str, folder: Path, opened: AsyncExitStack) -> dict[str, Measure]:
    enter = opened.enter_async_context
    for name in ("cold", "warm", "scripted", "demo"):
        (folder / name).mkdir()
    cold = await enter(claude_engine(address, folder / "cold", warm=0))
    warm = await enter(claude_engine(address, folder / "warm", warm=2))
    openai = OpenAIEngine(model="scripted", address=f"{address}/v1", stall=STALL)
    opened.push_async_callback(openai.close)
    messages, long = "model, as Claude is asked", "model, asked at length"
    completions = "model, as OpenAI is asked"
    relay, long_relay = await enter(through_relay(address)), through_relay(address, size=LONG)
    scripted = await enter(whole_runs(ScriptedEngine(), folder / "scripted"))
    demo = await enter(whole_runs(DemoEngine("backburner"), folder / "demo"))
    return {
        messages: Measure(await enter(direct(address, MESSAGES))),
        long: Measure(await enter(direct(address, MESSAGES, size=LONG))),
        completions: Measure(await enter(direct(address, COMPLETIONS))),
        "relay": Measure(relay, messages, goal=(WHOLE, 5)),
        "relay, asked at length": Measure(await enter(long_relay), long, goal=(WHOLE, 5)),
        "claude, cold": Measure(new_turns(cold), messages, often=1),
        "claude, warm": Measure(next_turns(warm), messages, goal=(WHOLE, 100)),
        "openai": Measure(new_turns(openai), completions),
        "scripted, a whole run": Measure(scripted, goal=(FIRST, 10)),
        "demo, a whole run": Measure(demo),
    }


def _row(name: str, measures: Mapping[str, Measure]) -> dict[str, Cell]:
    one = measures[name]
    model = measures[one.model].median if one.model else {FIRST: 0.0, WHOLE: 0.0}
    added = {part: one.median[part] - model[part] for part in (FIRST, WHOLE)}
    goal, met = "", ""
    if one.goal is not None:
        part, most = one.goal
        goal, met = f"{part} < {most:g}", "yes" if added[part] < most else "no"
    return {
        "what": name,
        "first ms": one.median[FIRST],
        "all ms": one.median[WHOLE],
        "added first ms": added[FIRST] if one.model else "",
        "added all ms": added[WHOLE] if one.model else "",
        "goal": goal,
        "met": met,
    }


if __name__ == "__main__":
    main()
