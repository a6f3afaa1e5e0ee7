"""People who want things of workers in trouble, and remember what they wanted."""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from sqlalchemy.exc import DBAPIError

from backburner.core.conversation import Conversation, EndedAs
from backburner.core.errors import BackburnerError
from backburner.core.ids import UserId
from backburner.core.question import Question
from backburner.core.transitions import REPEAT
from support.doubles.engine import Call, End, Say, Sleep, Spend
from support.faults.outside import Outside
from support.programs.workers import Workers

USERS = tuple(UserId(f"u_{number}") for number in range(3))
#: How long everything may take to settle, in seconds.
SETTLING = 120
GIVEN_UP = "I could not answer"


@dataclass
class People:
    """They want things, and remember what they wanted."""

    outside: Outside
    dice: random.Random
    tasks: dict[str, Conversation] = field(default_factory=dict)
    chats: list[Conversation] = field(default_factory=list)
    #: What each message is to be answered with, and where.
    replies: dict[str, Conversation] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    #: Never given twice, even if a wish fails.
    numbers: Iterator[int] = field(default_factory=count)
    #: What was said about calls in doubt, by what they send.
    doubted: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def want_something(self) -> None:
        usual = (self.work, self.talk, self.answer_some)
        wishes = (*usual, *usual, self.cancel)
        try:
            self.dice.choice(wishes)()
        except BackburnerError:
            # It was over already, or the database is in trouble.
            self.counts["too late"] += 1
        except DBAPIError:
            self.counts["refused"] += 1

    def work(self) -> None:
        text = f"letter {next(self.numbers)};"
        self.tasks[text] = self.outside.task(
            Spend(10),
            Call("look", {"seconds": self.dice.uniform(0, 0.4)}),
            Call("send", {"text": text, "seconds": self.dice.uniform(0, 0.2)}),
            Sleep(self.dice.uniform(0, 0.4)),
            Spend(5),
            End({"complete": True, "message": f"Sent {text}"}),
            user=self.dice.choice(USERS),
            may_send=self.dice.random() < 0.7,
        )
        self.counts["tasks"] += 1

    def talk(self) -> None:
        if len(self.chats) < 2 * len(USERS):
            self.chats.append(self.outside.chat(user=self.dice.choice(USERS)))
        chat, text = self.dice.choice(self.chats), f"reply {next(self.numbers)};"
        self.outside.say(
            chat, Spend(3), Sleep(self.dice.uniform(0, 0.3)), Say(text), Call("look"), Say(" ")
        )
        self.replies[text] = chat
        self.counts["messages"] += 1

    def cancel(self) -> None:
        if self.tasks:
            self.outside.cancel(self.dice.choice(list(self.tasks.values())))
            self.counts["cancels"] += 1

    def answer_some(self) -> None:
        for asked in self.outside.rows(
            "SELECT conversation_id FROM questions WHERE closed_at IS NULL"
        ):
            for task in self.tasks.values():
                if task.id == asked[0]:
                    self._answer(task)

    def _answer(self, task: Conversation) -> None:
        for question in self.outside.load(task).questions:
            said = self.dice.choice(question.options)
            self._note(question, said)
            self.outside.answer(task, question, said)
            self.counts["answers"] += 1

    def _note(self, question: Question, said: str) -> None:
        if question.purpose.value == "in_doubt":
            (call,) = question.binds_to["calls"]
            self.doubted[call["arguments"]["text"]].append(said)

    def settle(self) -> list[str]:
        """Answer everything until there is nothing left to do; tell what never came to rest."""
        until = time.monotonic() + SETTLING
        while time.monotonic() < until:
            self.outside.let_a_minute_pass_for_deliveries()
            self.answer_some()
            open_ones = self.outside.rows("SELECT 1 FROM questions WHERE closed_at IS NULL")
            if not open_ones and self.outside.is_settled():
                return []
            time.sleep(0.2)
        return ["It never came to rest."]

    def disappointments(self, workers: Workers) -> list[str]:
        """Find what was wanted and did not happen, or happened too often."""
        sent = Counter(workers.sent())
        found = [
            f"{text} was sent {count} times, and its owner said {self.doubted[text]}"
            for text, count in sent.items()
            if count > 1 + self.doubted[text].count(REPEAT)
        ]
        for text, task in self.tasks.items():
            ended_as = self.outside.load(task).ended_as
            if ended_as is None:
                found.append(f"{text} never ended")
            elif ended_as is EndedAs.COMPLETED and not self.doubted[text] and sent[text] != 1:
                found.append(f"{text} is done, and was sent {sent[text]} times")
        for text, chat in self.replies.items():
            said = "\n".join(self.outside.said(chat))
            if said.count(text) != 1 and not (said.count(text) == 0 and GIVEN_UP in said):
                found.append(f"{text} was said {said.count(text)} times")
        return found


def sum_up(people: People, workers: Workers) -> str:
    rows = people.outside.rows
    ((runs, crashed),) = rows(
        "SELECT count(*), count(*) FILTER (WHERE failure_kind = 'crashed') FROM runs"
    )
    doubts = sum(map(len, people.doubted.values()))
    counts = ", ".join(f"{number} {what}" for what, number in sorted(people.counts.items()))
    return (
        f"{counts}, {runs} runs, {crashed} crashed, {doubts} calls in doubt,"
        f" {len(workers.sent())} sent, {len(workers.delivered())} deliveries"
    )
