"""Ordinary work in its cage: `soak cages`, with the real shell, workspace tools and tool policy.

Each piece of work has to be allowed without a question, to succeed, and to change no file that
needs one. Then servers and clients on loopback, which need the network; then a day of coding, and
the number of questions that it asks. Programs that are not installed are named, and not shown.
"""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from support.cases.coding_day import DAY, NETWORK, PROJECT, asked_before
from support.doubles.tools import ALONE

from backburner.core.commands import Cage
from backburner.core.ids import QuestionId
from backburner.core.question import YES, Purpose, Question, QuestionType
from backburner.core.tool_policy import (
    ALWAYS_HERE,
    Allow,
    Ask,
    Grant,
    ToolCall,
    approval_binding,
    approval_options,
    decide,
    grants_given,
)
from backburner.gateway.network import CheckedNetwork
from backburner.ports import Offer, ToolResult
from backburner.process.command import COMMAND_PATH
from backburner.process.confinement import gives_process_namespace
from backburner.process.shell import ConfinedShell
from backburner.tools.workspace import workspace_offers

#: As an operator allows it: the interpreter of this project, which has pytest, and the package in
#: its source folder, where `pip list` looks.
READABLE = (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[1] / "src")
SEARCHED = f"{Path(sys.executable).parent}:{COMMAND_PATH}"
TIMEOUT = 300
NOW = datetime(2030, 1, 1, tzinfo=UTC)
#: Of programs that need others.
NEEDED = {"./hello": ("gcc",), "make": ("make", "cc"), "npm": ("npm", "node")}
SUCCESS = "[Exit code 0.]"
NETWORK_HINT = "[It had no network. If it needs it, run it with network; that asks the user."
#: Of the output of what failed, its end.
SHOWN_CHARS = 600


@dataclass(frozen=True, slots=True)
class Work:
    name: str
    line: str
    #: Has to be in the output.
    expected: str
    programs: Sequence[str] = ()


WORK = (
    Work(
        "git init, add, commit, branch, merge, log",
        """
        git init -q && git add -A && git commit -qm first && git checkout -qb side &&
        echo side >side.txt && git add -A && git commit -qm second && git checkout -q main &&
        echo main >main.txt && git add -A && git commit -qm third &&
        git merge -q --no-edit side && git log --oneline --graph
        """,
        "Merge branch 'side'",
        ("git",),
    ),
    Work(
        "git rebase, stash, tag, blame, gc, fsck",
        """
        git checkout -qb other HEAD~1 && echo other >other.txt && git add -A &&
        git commit -qm fourth && git rebase main && git checkout -q main && git merge -q other &&
        echo more >>main.txt && git stash && git diff --quiet && git stash pop && git tag v1 &&
        git blame README.md && git gc -q && git fsck && git commit -qam fifth && git log --oneline
        """,
        "fourth",
        ("git",),
    ),
    Work(
        "git worktree, clone, pull and push in the folder",
        """
        git worktree add -q tree side && git -C tree log --oneline && git worktree remove tree &&
        git clone -q . copy && git -C copy pull && git -C copy push origin HEAD:refs/heads/pushed &&
        git branch --list pushed && rm -rf copy
        """,
        "pushed",
        ("git",),
    ),
    Work("pytest", "pytest -q", "1 passed", ("pytest",)),
    Work("pytest with two processes", "pytest -q -n 2", "1 passed", ("pytest",)),
    Work(
        "python: a new environment with pip",
        "python -m venv env && env/bin/pip list && rm -r env",
        "pip",
        ("python",),
    ),
    Work(
        "python: threads, subprocesses, socket pairs, SQLite",
        """
        python - <<'END'
        import asyncio, concurrent.futures, socket, sqlite3
        async def run():
            program = await asyncio.create_subprocess_exec("true")
            return await program.wait()
        assert asyncio.run(run()) == 0
        assert list(concurrent.futures.ThreadPoolExecutor().map(abs, [-1])) == [1]
        one, other = socket.socketpair()
        one.send(b"x")
        assert other.recv(1) == b"x"
        with sqlite3.connect("data.db") as db:
            db.execute("PRAGMA journal_mode = wal")
            db.execute("CREATE TABLE numbers (number)")
        print("all four")
        END
        rm data.db
        """.replace("\n        ", "\n"),
        "all four",
        ("python",),
    ),
    Work("node", "node -p \"require('./lib.js')(1, 2)\"", "3", ("node",)),
    Work("npm test", "npm test", "# pass 2", ("npm", "node")),
    Work("npm run build, npm ls", "npm run build && npm ls", "(empty)", ("npm", "node")),
    Work("make and a C compiler", "make && ./hello", "hello", ("make", "cc")),
    Work(
        "javac, java, jar",
        "javac Hello.java && java Hello && jar cf hello.jar *.class && java -cp hello.jar Hello",
        "hello from java",
        ("javac", "java", "jar"),
    ),
    Work(
        "find, grep, sed, cp, mv, chmod, tar, rm",
        """
        find . -name '*.py' | xargs grep -n def && mkdir box && cp app.py box/ &&
        sed -i s/a/b/ box/app.py && mv box/app.py box/b.py && chmod 755 box/b.py &&
        tar czf box.tgz box && rm -r box && tar xzf box.tgz && ls box && rm -r box box.tgz
        """,
        "b.py",
    ),
)
#: After the work above, in the same folder: it only reads, apart from its home folder.
LOOKS = (
    Work(
        "git status, log, diff, blame",
        "git status && git diff v1 && git blame README.md && git log",
        "fifth",
        ("git",),
    ),
    Work("pytest", "pytest -q -p no:cacheprovider", "1 passed", ("pytest",)),
    Work("npm test, npm ls", "npm test && npm ls", "# pass 2", ("npm", "node")),
    Work("node", "node -p \"require('./lib.js')(1, 2)\"", "3", ("node",)),
    Work("make, with all built", "make && ./hello", "hello", ("make", "cc")),
    Work("java", "java -cp hello.jar Hello", "hello from java", ("java", "jar", "javac")),
    Work("find, grep, sed, tar", "find . | head -50; grep -rn greet . && tar c . | wc -c", "greet"),
)
#: Of a team: as many processes as the line itself starts.
OWN_PROCESSES = Work(
    "ps and /proc/self: no processes but its own",
    "ps -e && test $(ps -e --no-headers | wc -l) -lt 6 && grep NSpid /proc/self/status",
    "NSpid",
    ("ps",),
)
#: They do not work in any cage, as docs/decisions/0010 says.
LIMITS = (
    Work(
        "python: a pool of processes, which needs /dev/shm",
        "python -c 'import multiprocessing; multiprocessing.Pool(1)'",
        "Permission denied",
        ("python",),
    ),
    Work(
        "script: a terminal, which needs /dev/ptmx",
        "script -qec true /dev/null",
        "Permission denied",
        ("script",),
    ),
)
#: They need the network; `{port}` is one that a server listens on.
REACHES = (
    Work(
        "python listens",
        'python -c \'import socket; socket.create_server(("127.0.0.1", 0)); print("listens")\'',
        "listens",
        ("python",),
    ),
    Work(
        "node listens",
        """node -e 's = require("http").createServer().listen(0, "127.0.0.1", () => {
        console.log("listens"); s.close() })'""",
        "listens",
        ("node",),
    ),
    Work("bash connects", "exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected", "connected"),
    Work(
        "python connects",
        'python -c \'import socket; socket.create_connection(("127.0.0.1", {port}));'
        ' print("connected")\'',
        "connected",
        ("python",),
    ),
    Work("curl connects", "curl -sS http://127.0.0.1:{port}/", "hello", ("curl",)),
)


@dataclass
class Cages:
    root: Path
    broken: list[str] = field(default_factory=list)
    shown: int = 0
    #: Programs that are not installed.
    missing: set[str] = field(default_factory=set)

    async def work(self, *, has_others: bool) -> None:
        team = "-team" if has_others else ""
        folder = self.root / f"project{team}"
        run_command = await self.start(folder, Cage.WORK, has_others=has_others)
        for work in WORK:
            await self.show(work, run_command, f"work{team}")
        if has_others and await asyncio.to_thread(gives_process_namespace):
            await self.show(OWN_PROCESSES, run_command, "work-team")
        run_command = self.command(folder, Cage.LOOK, has_others=has_others)
        for look in LOOKS:
            await self.show(look, run_command, f"look{team}")
        for line in ("echo x >new", "rm app.py", "git commit --allow-empty -m x"):
            ran = await run_command.run({"command": line})
            refused = SUCCESS not in ran.text and "It could not write in the workspace." in ran.text
            self.expect(f"{line!r} changes nothing in look{team}", holds=refused, shown=ran.text)

    async def show_limits(self) -> None:
        run_command = self.command(self.root / "project", Cage.WORK)
        for limit in LIMITS:
            if self.is_installed(limit.programs):
                ran = await run_command.run({"command": limit.line})
                holds = SUCCESS not in ran.text and limit.expected in ran.text
                self.expect(
                    f"{limit.name}: the decision needs a change", holds=holds, shown=ran.text
                )
                print(f"{'work':13} {'':8}  limit   {limit.name}")

    async def reach(self) -> None:
        server = await asyncio.start_server(say_hello, "127.0.0.1", 0)
        async with server:
            port = str(server.sockets[0].getsockname()[1])
            for cage in Cage:
                run_command = self.command(self.root / "project", cage)
                for work in REACHES:
                    await self.show_reach(work, run_command, port)

    async def show(self, work: Work, run_command: Offer, cage: str) -> None:
        if not self.is_installed(work.programs):
            print(f"{cage:13} {'':8}  not shown: {work.name}")
            return
        arguments = {"command": work.line, "timeout": TIMEOUT}
        ran, seconds = await run_timed(run_command, arguments)
        is_free = decide_alone(ToolCall(run_command.tool, arguments)) == Allow()
        self.expect(f"{work.name}: no question", holds=is_free and not ran.asks, shown=ran.text)
        self.report(work.name, cage, seconds, ran, holds=succeeded(ran, work.expected))

    async def show_reach(self, work: Work, run_command: Offer, port: str) -> None:
        line, cage = work.line.replace("{port}", port), run_command.tool.cage
        if not self.is_installed(work.programs):
            print(f"{cage:13} {'':8}  not shown: {work.name}")
            return
        alone, seconds = await run_timed(run_command, {"command": line})
        is_refused = SUCCESS not in alone.text and work.expected not in alone.text
        holds = is_refused and NETWORK_HINT in alone.text
        self.report(f"{work.name}: refused with a hint", f"{cage}", seconds, alone, holds=holds)
        arguments = {"command": line, "network": True}
        asks = isinstance(decide_alone(ToolCall(run_command.tool, arguments)), Ask)
        self.expect(f"{work.name}: a question with the network", holds=asks)
        reached, seconds = await run_timed(run_command, arguments)
        holds = succeeded(reached, work.expected)
        self.report(f"{work.name}: works", f"{cage}+network", seconds, reached, holds=holds)

    async def code_all_day(self) -> None:
        """Run what needs no network, and count the questions of everything."""
        run_command = await self.start(self.root / "day", Cage.WORK)
        await run_command.run({"command": "git init -q && git add -A && git commit -qm begin"})
        grants, asked, taken = list[Grant](), list[bool](), list[float]()
        for number, marked in enumerate(DAY):
            line, network = marked.removeprefix(NETWORK), marked.startswith(NETWORK)
            arguments = {"command": line, "network": network}
            granted = answer_question(ToolCall(run_command.tool, arguments), grants, number)
            asked.append(granted is not None)
            grants += granted or ()
            if not network and self.is_installed(programs_of(line)):
                ran, seconds = await run_timed(run_command, arguments)
                taken.append(seconds)
                holds = succeeded(ran) and not ran.asks and granted is None
                self.expect(f"of the day: {line}", holds=holds, shown=ran.text)
        print(
            f"\nA day of coding: {len(DAY)} commands, {len(set(DAY))} of them different."
            f" {len(taken)} need no network and were run in work, in {sum(taken):.1f} s.\n"
        )
        self.count_questions(asked)

    def count_questions(self, asked: Sequence[bool]) -> None:
        lines = [marked.removeprefix(NETWORK) for marked in DAY]
        before = list(asked_before(lines))
        widened = list(asked_before(lines, kept_words=2))
        rows = dict[str, list[int]]()
        for number, marked in enumerate(DAY):
            counts = (True, marked[0] == NETWORK, asked[number], before[number], widened[number])
            row = rows.setdefault(lines[number].split()[0], [0] * len(counts))
            for column, count in enumerate(counts):
                row[column] += count
        total = [sum(column) for column in zip(*rows.values(), strict=True)]
        print(
            f"{'':10} {'commands':>9} {'network':>8} {'asks now':>9} {'before':>8} {'widened':>8}"
        )
        for name, row in [*sorted(rows.items(), key=lambda item: -item[1][0]), ("total", total)]:
            print(f"{name:10} {row[0]:9} {row[1]:8} {row[2]:9} {row[3]:8} {row[4]:8}")
        print(
            f"\n{total[2]} questions now. Before cages decided, {total[3]}; {total[4]} if its user"
            " had shortened every grant to two words by hand."
        )
        print(
            "They are for:", "; ".join(line for line, one in zip(lines, asked, strict=True) if one)
        )
        self.expect("the day asks less than before", holds=total[2] < min(total[3:]))

    async def start(self, folder: Path, cage: Cage, *, has_others: bool = False) -> Offer:
        """Write the project with the tool for it; return the tool for commands."""
        tools = self.tools(folder, cage, has_others=has_others)
        for path, content in PROJECT.items():
            written = await tools["write_file"].run({"path": path, "content": content})
            self.expect(f"{path} is written", holds=not written.failed, shown=written.text)
        return tools["run_command"]

    def command(self, folder: Path, cage: Cage, *, has_others: bool = False) -> Offer:
        return self.tools(folder, cage, has_others=has_others)["run_command"]

    def tools(self, folder: Path, cage: Cage, *, has_others: bool) -> dict[str, Offer]:
        async def others() -> bool:
            return has_others

        shell = ConfinedShell(readable=READABLE, variables={"PATH": SEARCHED}, disk=self.root)
        terms = replace(ALONE, cage=cage, has_others=others)
        offers = workspace_offers(folder, self.root / "kept", shell, CheckedNetwork(), terms)
        return {offer.tool.name: offer for offer in offers}

    def is_installed(self, programs: Sequence[str]) -> bool:
        missing = [name for name in programs if shutil.which(name, path=SEARCHED) is None]
        self.missing.update(missing)
        return not missing

    def report(self, name: str, cage: str, seconds: float, ran: ToolResult, *, holds: bool) -> None:
        print(f"{cage:13} {seconds:6.2f} s  {'ok' if holds else 'FAILED':6}  {name}", flush=True)
        self.expect(f"{name} in {cage}", holds=holds, shown=ran.text)

    def expect(self, what: str, *, holds: bool, shown: str = "") -> None:
        self.shown += 1
        if not holds:
            self.broken.append(what)
            print(f"FAILED: {what}\n{shown[-SHOWN_CHARS:]}", flush=True)


def decide_alone(call: ToolCall, grants: Sequence[Grant] = ()) -> object:
    return decide(call, grants, allowed=None, in_doubt=False, now=NOW)


def answer_question(call: ToolCall, grants: Sequence[Grant], number: int) -> Sequence[Grant] | None:
    """Answer the question of a call, for good where that is offered; None: it asks nothing."""
    if not isinstance(decide_alone(call, grants), Ask):
        return None
    options = approval_options([call])
    question = Question(
        id=QuestionId(f"q_{number}"),
        purpose=Purpose.APPROVAL,
        type=QuestionType.CHOICE,
        prompt="",
        asked_at=NOW,
        binds_to=approval_binding([call]),
    )
    given = ALWAYS_HERE if ALWAYS_HERE in options else YES
    granted = grants_given(question, given, now=NOW)
    # A single approval is used up by the call that follows.
    return granted if given == ALWAYS_HERE else ()


async def run_timed(run_command: Offer, arguments: Mapping[str, Any]) -> tuple[ToolResult, float]:
    began = time.monotonic()
    ran = await run_command.run(arguments)
    return ran, time.monotonic() - began


def programs_of(line: str) -> Sequence[str]:
    """Name the programs that a line of the day needs."""
    program = line.split(maxsplit=1)[0]
    return NEEDED.get(program, (program,))


def succeeded(ran: ToolResult, expected: str = "") -> bool:
    return not ran.failed and SUCCESS in ran.text and expected in ran.text


async def say_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    del reader
    writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nhello\n")
    writer.close()


async def run(root: Path) -> Cages:
    cages = Cages(root)
    await cages.work(has_others=False)
    # Commands of a team see no processes but their own.
    await cages.work(has_others=True)
    await cages.reach()
    await cages.show_limits()
    await cages.code_all_day()
    return cages


def main(arguments: list[str]) -> int:
    if arguments:
        print("soak cages takes no arguments.", file=sys.stderr)
        return 2
    missing = ConfinedShell().cage_missing
    if missing is not None:
        print(f"Nothing was shown: {missing}", file=sys.stderr)
        return 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bb-soak-") as folder:
        cages = asyncio.run(run(Path(os.path.realpath(folder))))
    for program in sorted(cages.missing):
        print(f"not there, so not shown: {program} is in none of {SEARCHED}")
    print(
        f"{cages.shown} checks, {len(cages.broken)} violations, {len(cages.missing)} programs"
        f" missing, in {time.monotonic() - began:,.0f} s"
    )
    return 1 if cages.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
