"""Claude Code used for long: `soak engines [RUNS]`, the real program with a stand-in for its model.

First one piece of work comes back again and again; then chats take turns, with work in between.
What the model is asked has to stay within bounds, and to be of its own conversation only; what was
started has to be gone.
"""

import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.doubles.clock import SetClock
from support.model_api import ModelApi
from support.programs.process_table import parent_of
from support.stage.steady_work import SteadyWork, look_and_count, work_stage

from backburner.core.conversation import Conversation
from backburner.core.ids import UserId
from backburner.core.run import RunStatus
from backburner.engine.claude.engine import ClaudeEngine, ClaudeModel
from backburner.process.launcher import CleanLauncher

RUNS, CHATS, ROUNDS = 100, 20, 3
#: Runs before open files are counted.
FIRST = 10
#: In tokens; reached after a few runs.
CONTEXT = 4_000
MOST_GROWTH = 1.2
WARM = 2
#: Seconds that everything has to be gone in.
SOON = 5


class CountingLauncher:
    """The usual one, which counts."""

    def __init__(self) -> None:
        self.count = 0
        self._usual = CleanLauncher()

    def write(self, path: Path, **how: Any) -> None:
        self.count += 1
        self._usual.write(path, **how)


@dataclass
class Use:
    work: SteadyWork
    launcher: CountingLauncher
    homes: Path
    chats: list[Conversation] = field(default_factory=list)
    #: What was said in each chat.
    words: dict[str, list[str]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def expect(self, what: str, *, holds: bool) -> None:
        if not holds:
            self.broken.append(what)
            print(what)

    async def work_again_and_again(self, runs: int) -> Conversation:
        task = await self.work.run(FIRST)
        # Connections to the database are opened as they are needed, and stay.
        before = open_files()
        for _ in range(runs - FIRST):
            await self.work.run_once(task)
        growth = self.work.growth
        self.expect(f"requests grew to {growth:.2f} times", holds=growth <= MOST_GROWTH)
        self.expect("programs are left after work", holds=await left(0) == 0)
        self.expect("homes are left after work", holds=self.count_homes() == 0)
        now = open_files()
        self.expect(f"{now - before} more files are open", holds=now <= before)
        return task

    async def talk_in_turns(self, task: Conversation) -> None:
        for number in range(CHATS):
            chat = await self.work.stage.chat(UserId(f"u_{number}"))
            self.chats.append(chat)
            self.words[chat.id] = []
        for _ in range(ROUNDS):
            for number, chat in enumerate(self.chats):
                # The second time its program is warm.
                await self.say_something(chat)
                await self.say_something(chat)
                if number % 4 == 0:
                    await self.work.run_once(task)
        warm = await left(WARM)
        self.expect(f"{warm} programs are kept warm", holds=warm == WARM)
        self.expect("homes are left of others", holds=self.count_homes() == WARM)

    async def say_something(self, chat: Conversation) -> None:
        stage, own = self.work.stage, self.words[chat.id]
        own.append(f"word {self.chats.index(chat)}-{len(own)};")
        await stage.say(chat, own[-1])
        await stage.work()
        asked = self.work.api.requests[-1]
        others = (words[0] for which, words in self.words.items() if words and which != chat.id)
        self.expect("an agent did not remember", holds=all(map(asked.holds, own)))
        self.expect("an agent was told of others", holds=not any(map(asked.holds, others)))
        self.expect("there was no reply", holds=stage.said(chat)[-1] == "Hello.")

    def count_homes(self) -> int:
        return len(list(self.homes.glob("p-*/home-*")))

    def look_back(self, task: Conversation) -> str:
        """See what there is at the end, and sum it up."""
        stage, runs = self.work.stage, len(self.work.sizes)
        statuses = {run.status for run in stage.history(task)}
        self.expect(f"runs ended as {statuses}", holds=statuses == {RunStatus.SUCCESS})
        counted = stage.load(task).state.data
        self.expect(f"of {runs} runs {counted} were counted", holds=counted == {"count": runs})
        renewals = len(self.work.sessions) - 1
        self.expect(
            f"the session was renewed {renewals} times", holds=renewals >= min(runs // 10, 50)
        )
        # The summary that the next session starts from is written by a program of its own.
        started, expected = self.launcher.count, runs + renewals + ROUNDS * CHATS
        self.expect(f"{started} programs for {expected}", holds=started == expected)
        self.expect("the model complained", holds=self.work.api.complaints == [])
        self.expect("folders are left", holds=list(self.homes.iterdir()) == [])
        return (
            f"{runs} runs, {2 * ROUNDS * CHATS} replies in {CHATS} chats: {started} programs,"
            f" {renewals} renewals, requests grew to {self.work.growth:.2f} times"
        )


def main(arguments: list[str]) -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bb-soak-") as folder:
        summary, broken = asyncio.run(use(Path(folder), int(arguments[0]) if arguments else RUNS))
    print(f"{summary}, {len(broken)} violations in {time.monotonic() - began:,.0f} s")
    return 1 if broken else 0


async def use(folder: Path, runs: int) -> tuple[str, list[str]]:
    launcher, clock = CountingLauncher(), SetClock()
    async with ModelApi(otherwise=look_and_count) as api:
        engine = ClaudeEngine(
            ClaudeModel(name="claude-sonnet-4-5", address=api.address, headers={}),
            launcher=launcher,
            homes=folder / "homes",
            workspace=lambda user: folder / "workspaces" / user,
            warm=WARM,
        )
        with work_stage(engine, folder, clock, context=CONTEXT) as stage:
            one = Use(SteadyWork(stage, api, clock), launcher, folder / "homes")
            task = await one.work_again_and_again(runs)
            await one.talk_in_turns(task)
            await engine.close()
            one.expect("programs are left", holds=await left(0) == 0)
            return one.look_back(task), one.broken


def children() -> list[int]:
    """Give the ids of what this process has started; the dead are not waited for by then."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if parent_of(int(folder.name)) == os.getpid():
                found.append(int(folder.name))
        except OSError:
            pass
    return found


async def left(count: int) -> int:
    """Give those that end the time for it, and say how many are left: so many, if all is well."""
    until = time.monotonic() + SOON
    # Who has started them waits for them by the way, and says nothing.
    while len(children()) != count and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return len(children())


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
