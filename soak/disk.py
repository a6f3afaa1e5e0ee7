"""A disk that is really full: `soak disk [SECONDS]`, for so many seconds.

The data folder with its SQLite file is on a small disk in memory, which needs root. A program works
there on tasks and messages that come over HTTP, and on tasks that fall due while the disk is full.
What was accepted has to be done, once, and what was not has to be refused in words. Then the same
for a data folder whose database is a PostgreSQL elsewhere: work goes on, and readiness fails.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
from support.doubles.engine import Call, End, Say, Spend
from support.faults import script
from support.faults.invariants import violations_at_rest
from support.faults.outside import Outside
from support.programs.programs import Start, starter
from support.programs.workers import Workers
from support.servers.postgres_server import postgres_server
from support.stage.make import USER

from backburner.core.ids import UserId
from backburner.core.schedule import Scheduled
from backburner.store.dialect import make_engine
from backburner.store.lifecycle.schema import bring_up_to_date

SECONDS = 30.0
SIZE = "24m"
#: How soon new work is done when there is space again, and how long all of it may take.
SOON, SETTLING = 10.0, 120.0
#: Tasks that fall due one after the other, of somebody else.
DUE, DUE_USER = 60, UserId("u_other")
FULL = "The disk is full."


def main(arguments: list[str]) -> int:
    seconds = float(arguments[0]) if arguments else SECONDS
    with tempfile.TemporaryDirectory() as folder, starter() as start:
        data = Path(folder, "data")
        data.mkdir(mode=0o700)
        try:
            with small_disk(data):
                broken = fill(Workers(start, Path(folder), None), start, data, seconds)
            with small_disk(data), postgres_server() as url:
                broken += fill_data_folder(Workers(start, Path(folder, "2"), url), data, url)
        except NotMountedError as error:
            print(f"Not run: this mounts a disk in memory, which needs root: {error}")
            return 1
    for violation in broken:
        print(violation)
    print(f"a full disk for {seconds:.0f} s: {len(broken)} violations")
    return 1 if broken else 0


class NotMountedError(Exception):
    """The disk cannot be mounted here."""


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    options = f"size={SIZE},mode=0700,uid={os.getuid()}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    done = subprocess.run(mount, check=False, capture_output=True, text=True)
    if done.returncode:
        raise NotMountedError(" ".join(done.stderr.split()))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)  # noqa: S607


def fill(workers: Workers, start: Start, data: Path, seconds: float) -> list[str]:
    url = f"sqlite:///{data / 'backburner.sqlite3'}"
    engine = make_engine(url)
    bring_up_to_date(engine)
    engine.dispose()
    with Outside(url) as outside:
        due = give_due_work(outside, within=seconds)
        tokens = [outside.token(user=user) for user in (USER, DUE_USER)]
    program = workers.start("--batch", "4")
    people, owner = (Client(connect(program.name, token)) for token in tokens)
    people.want_for(seconds / 3)
    with filled(data) as fill_up:
        people.want_for(seconds, fill_up)
    took = people.wait_for_new_work()
    print(f"{dict(people.counts)}; new work was done after {took:.1f} s", flush=True)
    broken = [*people.broken, *people.settle(people.accepted), *owner.settle(due)]
    if took > SOON:
        broken.append(f"With space again, new work took {took:.0f} s.")
    if not people.counts["refused"]:
        broken.append("Nothing was refused: the disk was never full.")
    with filled(data) as fill_up:
        if code := program.running.end(signal.SIGTERM).code:
            broken.append(f"The program ended with {code} on the full disk.")
        # The log of SQLite is gone, and has left some space.
        fill_up()
        refused = start("up", "--data", str(data), "--port", "0").end()
        if not refused.code or "disk is full" not in "".join(refused.err):
            broken.append(f"A start on the full disk: {refused}")
    if code := workers.start().running.end(signal.SIGTERM).code:
        broken.append(f"The program ended with {code} after that.")
    with Outside(url) as outside:
        broken += violations_at_rest(outside.rows, workers.traces)
        broken += [
            f"{text} was said {said} times"
            for text, which in people.accepted.items()
            if (said := count_said(outside, which, text)) != 1
        ]
        print(f"{len(people.accepted)} accepted, {len(workers.sent())} of {DUE} sent", flush=True)
    return broken


def fill_data_folder(workers: Workers, data: Path, url: str) -> list[str]:
    engine = make_engine(url)
    bring_up_to_date(engine)
    engine.dispose()
    workers.traces.path.parent.mkdir()
    with Outside(url) as outside:
        program = workers.start("--serve", "--data", str(data))
        people = Client(connect(program.name, outside.token()))
        with filled(data):
            people.want_for(SOON)
        broken = [*people.broken, *people.settle(people.accepted)]
        if people.counts["refused"] or people.counts["ready 200"]:
            broken.append(f"Without space in the data folder only: {dict(people.counts)}")
        if not people.finds_ready():
            broken.append(f"It is not ready after {SOON} s with space in the data folder.")
        broken += violations_at_rest(outside.rows, workers.traces)
        print(f"PostgreSQL elsewhere: {dict(people.counts)}", flush=True)
        workers.end()
    return broken


def connect(address: str, token: str) -> httpx2.Client:
    headers = {"authorization": f"Bearer {token}"}
    return httpx2.Client(base_url=address, headers=headers, timeout=30)


def give_due_work(outside: Outside, *, within: float) -> dict[str, str]:
    """Set up tasks that fall due one after the other, most of them while the disk is full."""
    began = outside.database.run(lambda tx: tx.now)
    due: dict[str, str] = {}
    for number in range(DUE):
        text = f"letter {number};"
        done = End({"complete": True, "message": f"Sent {text}"})
        at = began + timedelta(seconds=4 + number * 1.5 * within / DUE)
        task = outside.task(
            *(Spend(10), Call("send", {"text": text}), done),
            user=DUE_USER,
            schedule=Scheduled(at),
        )
        due[text] = task.id
    return due


def count_said(outside: Outside, which: str, text: str) -> int:
    query = "SELECT content FROM messages WHERE conversation_id = :which AND role <> 'user'"
    return sum(content.count(text) for (content,) in outside.rows(query, which=which))


@contextmanager
def filled(data: Path) -> Iterator[Callable[[], None]]:
    """Fill the disk, and again whenever it is asked for; free it at the end."""
    filler = data / "filler"
    with filler.open("ab", buffering=0) as file:

        def fill_up() -> None:
            for size in (2**16, 2**12, 1):
                with suppress(OSError):
                    while file.write(b"x" * size):
                        pass

        fill_up()
        yield fill_up
    filler.unlink()


@dataclass
class Client:
    """Wants things over HTTP, and remembers what was accepted."""

    http: httpx2.Client
    #: What is to be said, and in which conversation.
    accepted: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def want_for(self, seconds: float, fill_up: Callable[[], None] = lambda: None) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            fill_up()
            self.want_something()
            if self.ask("GET", "/api/conversations").status_code != 200:
                self.broken.append("Conversations cannot be read.")
            self.counts[f"ready {self.ask('GET', '/ready').status_code}"] += 1
            time.sleep(0.2)

    def want_something(self) -> None:
        """Send a message in a new conversation, or set up a task."""
        number = next(self.numbers)
        text = f"answer {number};"
        if number % 2:
            prompt = script.write(End({"complete": True, "message": text}))
            task = {"name": f"task-{number}", "prompt": prompt, "kind": "oneshot"}
            made = self.try_to("/api/tasks", task)
            if made is not None:
                self.accepted[text] = made["id"]
        elif (chat := self.try_to("/api/conversations", {})) is not None:
            content = script.write(Spend(3), Say(text))
            if self.try_to(f"/api/conversations/{chat['id']}/messages", {"content": content}):
                self.accepted[text] = chat["id"]

    def try_to(self, path: str, body: object) -> Any:
        answer = self.ask("POST", path, body)
        if answer.is_success:
            self.counts["accepted"] += 1
            return answer.json()
        self.counts["refused"] += 1
        if answer.status_code != 503 or FULL not in answer.text:
            self.broken.append(f"{path}: {answer.status_code} {answer.text}")
        return None

    def ask(self, method: str, path: str, body: object = None) -> httpx2.Response:
        return self.http.request(method, path, json=body)

    def wait_for_new_work(self) -> float:
        began = time.monotonic()
        before = len(self.accepted)
        while len(self.accepted) < before + 2 and time.monotonic() < began + SETTLING:
            self.want_something()
        new = dict(list(self.accepted.items())[before:])
        self.broken += self.settle(new)
        return time.monotonic() - began

    def settle(self, wanted: dict[str, str]) -> list[str]:
        """Wait until all of this has been done; tell what was not."""
        until = time.monotonic() + SETTLING
        left = dict(wanted)
        while left and time.monotonic() < until:
            left = {text: which for text, which in left.items() if not self.is_done(which)}
            time.sleep(0.1)
        return [f"{text} was never done" for text in left]

    def finds_ready(self) -> bool:
        """Ask whether it is ready until it is, or until it should be."""
        until = time.monotonic() + SOON
        while not (is_ready := self.ask("GET", "/ready").is_success) and time.monotonic() < until:
            time.sleep(0.2)
        return is_ready

    def is_done(self, which: str) -> bool:
        found = self.ask("GET", f"/api/conversations/{which}").json()
        if found["status"] == "waiting_input":
            # About a call whose result could not be saved.
            return True
        messages = self.ask("GET", f"/api/conversations/{which}/messages").json()["items"]
        return found["status"] != "background" and any(each["role"] != "user" for each in messages)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
