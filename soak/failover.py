"""A primary that is killed, and a synchronous standby that takes over: `soak failover [SECONDS]`.

Two workers and somebody who gives them work know both addresses. Nothing that was acknowledged may
be lost or done twice, and the longest time in which nothing was acknowledged is told.
"""

import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.exc import DBAPIError
from support.doubles.engine import Call, End, Say
from support.faults.invariants import violations_at_rest
from support.faults.outside import Outside
from support.faults.soak import migrate, report
from support.programs.programs import starter
from support.programs.workers import Workers
from support.servers.postgres_pair import postgres_pair

from backburner.core.conversation import Conversation, EndedAs
from backburner.core.errors import StoreFailed
from backburner.core.question import Purpose
from backburner.settings import load

SECONDS = 20.0
#: From the kill to the promotion: somebody has to notice.
NOTICED_AFTER = 3.0


@dataclass
class Wishes:
    """Tasks and messages that were acknowledged, and when."""

    outside: Outside
    tasks: dict[str, Conversation] = field(default_factory=dict)
    replies: dict[str, Conversation] = field(default_factory=dict)
    acknowledged_at: list[float] = field(default_factory=list)
    refused: int = 0

    def go_on(self, stopping: threading.Event) -> None:
        while not stopping.wait(0.1):
            try:
                self._wish()
            except (StoreFailed, DBAPIError):
                self.refused += 1
            else:
                self.acknowledged_at.append(time.monotonic())

    def _wish(self) -> None:
        number = len(self.acknowledged_at) + self.refused
        text = f"letter {number};"
        if number % 3:
            done = End({"complete": True, "message": f"Sent {text}"})
            self.tasks[text] = self.outside.task(Call("send", {"text": text}), done)
        else:
            chat = self.outside.chat()
            self.outside.say(chat, Say(text))
            self.replies[text] = chat

    def lost(self, workers: Workers) -> list[str]:
        sent = workers.sent()
        found = [
            f"{text} was sent {sent.count(text)} times, and its task is {task.status.value}, asks"
            f" {[f'{one.purpose.value}: {one.prompt[:300]}' for one in task.questions]}"
            for text, task in zip(
                self.tasks, map(self.outside.load, self.tasks.values()), strict=True
            )
            if not is_done(task, sent.count(text))
        ]
        return found + [
            f"{text} was not answered"
            for text, chat in self.replies.items()
            if self.outside.said(chat) != [text]
        ]


def is_done(task: Conversation, sent: int) -> bool:
    """Whether a letter was sent once, or its owner is asked about it after a lost lease."""
    purposes = [question.purpose for question in task.questions]
    is_doubtful = purposes == [Purpose.IN_DOUBT] and sent <= 1
    return is_doubtful or (sent == 1 and task.ended_as is EndedAs.COMPLETED)


def main(arguments: list[str]) -> int:
    seconds = float(arguments[0]) if arguments else SECONDS
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, postgres_pair() as pair, starter() as start:
        url = load(database_url=pair.url, data=folder).database.get_secret_value()
        migrate(url)
        workers = Workers(start, Path(folder), pair.url)
        for _ in range(2):
            workers.start()
        with Outside(url) as outside:
            wishes = Wishes(outside)
            stopping = threading.Event()
            wishing = threading.Thread(target=wishes.go_on, args=(stopping,))
            wishing.start()
            time.sleep(seconds / 2)
            pair.kill_primary()
            killed_at = time.monotonic()
            time.sleep(NOTICED_AFTER)
            pair.promote_standby()
            promoted_at = time.monotonic()
            time.sleep(seconds / 2)
            stopping.set()
            wishing.join()
            outside.let_a_minute_pass_for_deliveries()
            outside.wait_until_settled()
            broken = violations_at_rest(outside.rows, workers.traces) + wishes.lost(workers)
            first_run = first_run_after(outside, promoted_at)
        workers.end()
    first = min(at for at in wishes.acknowledged_at if at > killed_at)
    summary = (
        f"{len(wishes.acknowledged_at)} acknowledged, {wishes.refused} refused,"
        f" {first - killed_at:.1f} s from the kill to the next acknowledgement"
        f" ({promoted_at - killed_at:.1f} s of them until the promotion),"
        f" {first_run:.1f} s from the promotion to the next run"
    )
    return report(summary, broken, began=began)


def first_run_after(outside: Outside, moment: float) -> float:
    """Find how long after a moment the next run began."""
    ago = time.monotonic() - moment
    query = (
        "SELECT extract(epoch FROM min(started_at) - (clock_timestamp() - :ago * interval '1 s'))"
        " FROM runs WHERE started_at > clock_timestamp() - :ago * interval '1 s'"
    )
    return float(outside.rows(query, ago=ago)[0][0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
