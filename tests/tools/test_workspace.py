"""The tools for the workspace: their results, their refusals, and that no path leads out of it."""

import asyncio
import errno
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.doubles.tools import ALONE
from support.stage.make import NOON

from backburner.core.commands import Cage
from backburner.core.errors import MachineFailed, NotAllowed
from backburner.core.shown_call import show_call
from backburner.core.tool_policy import Ask, GrantMatch, ToolCall, decide
from backburner.ports import MAX_SHOWN_CHARS, CommandBounds, CommandResult, ToolResult, WebPage
from backburner.process.shell import ConfinedShell
from backburner.tools.files import MAX_OFFSET_BYTES, MAX_WRITE_BYTES
from backburner.tools.listing import MAX_LISTED
from backburner.tools.workspace import CommandTerms, workspace_offers
from backburner.tools.workspace_paths import explain_errors

CANARY = "canary-outside-of-the-workspace"
#: Exchanges two names in a loop; 2 is RENAME_EXCHANGE, -100 is AT_FDCWD.
EXCHANGE = """
import ctypes, os, sys
one, other = map(os.fsencode, sys.argv[1:])
rename = ctypes.CDLL(None).renameat2
print("begun", flush=True)
while rename(-100, one, -100, other, 2) == 0:
    pass
"""


#: Follows the result of a command that may have failed for want of it.
NO_NETWORK = "\n[It had no network. If it needs it, run it with network; that asks the user.]"


class RecordingShell:
    def __init__(self, ran: CommandResult) -> None:
        self.ran = ran
        self.cage_missing: str | None = None
        self.asked: list[tuple[str, Path, timedelta]] = []
        self.bounds: list[CommandBounds] = []

    async def run(
        self, line: str, *, folder: Path, within: timedelta, bounds: CommandBounds
    ) -> CommandResult:
        self.asked.append((line, folder, within))
        self.bounds.append(bounds)
        return self.ran


class RecordingNetwork:
    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []

    async def fetch(self, url: str, *, other_hosts: bool = False) -> WebPage:
        self.asked.append((url, other_hosts))
        if "inner" in url:
            raise NotAllowed("inner is not a public address.")
        return WebPage(
            url=url, status=200, content_type="text/html", text="words", truncated="long" in url
        )


class Workspace:
    def __init__(
        self, folder: Path, ran: CommandResult | None = None, terms: CommandTerms = ALONE
    ) -> None:
        self.folder = folder
        self.shell = RecordingShell(ran or CommandResult(output="out\n", code=0))
        self.network = RecordingNetwork()
        offers = workspace_offers(folder, folder / "kept", self.shell, self.network, terms)
        self.offers = {offer.tool.name: offer for offer in offers}

    async def __call__(self, tool: str, **arguments: Any) -> ToolResult:
        async with asyncio.timeout(20):
            return await self.offers[tool].run(arguments)

    async def text(self, tool: str, **arguments: Any) -> str:
        result = await self(tool, **arguments)
        assert not result.failed, result.text
        return result.text

    async def refusal(self, tool: str, **arguments: Any) -> str:
        result = await self(tool, **arguments)
        assert result.failed, result.text
        assert CANARY not in result.text
        return result.text


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "canary").write_text(CANARY)
    return folder


@pytest.fixture
def use(tmp_path: Path, outside: Path) -> Workspace:
    assert outside.exists()
    return Workspace(tmp_path / "data" / "workspace")


def put(use: Workspace, path: str, content: str | bytes = "text") -> Path:
    file = use.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def test_commands_and_fetches_need_approval_and_files_do_not(use: Workspace) -> None:
    facts = {
        name: (offer.tool.free, offer.read_only, offer.outside, offer.tool.grant_match)
        for name, offer in use.offers.items()
    }

    assert facts == {
        "read_file": (True, True, True, GrantMatch.TOOL),
        "write_file": (True, False, False, GrantMatch.NOTHING),
        "list_files": (True, True, True, GrantMatch.TOOL),
        "run_command": (False, False, True, GrantMatch.COMMAND),
        "keep_change": (False, False, True, GrantMatch.NOTHING),
        "undo_change": (False, False, True, GrantMatch.NOTHING),
        "fetch_url": (False, True, True, GrantMatch.HOST),
    }


async def test_workspaces_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere" / "workspaces" / "u_user"
    await Workspace(folder).text("write_file", path="a", content="x")

    for private in (folder, folder.parent):
        assert private.stat().st_mode & 0o777 == 0o700


async def test_writing_a_file_creates_its_folders(use: Workspace) -> None:
    assert not use.folder.exists()

    assert await use.text("write_file", path="a/b/file.txt", content="zwei\nü\n") == (
        "Created a/b/file.txt: 8 bytes."
    )
    assert await use.text("read_file", path="a/b/file.txt") == "zwei\nü\n"
    assert use.folder.stat().st_mode & 0o777 == 0o700
    assert (use.folder / "a/b/file.txt").stat().st_mode & 0o777 == 0o644


async def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(use: Workspace) -> None:
    put(use, "program", "old and longer").chmod(0o755)

    assert (await use.text("write_file", path="program", content="new")).startswith("Replaced")
    assert await use.text("read_file", path="program") == "new"
    assert (use.folder / "program").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in use.folder.iterdir()] == ["program"]


async def test_a_file_can_be_read_by_several_paths(use: Workspace) -> None:
    put(use, "a/file", "here")
    (use.folder / "link").symlink_to("a/file")
    (use.folder / "folder").symlink_to(use.folder / "a")
    (use.folder / "a" / "up").symlink_to("..")

    for path in ("a/file", "./a//file", "a/../a/file", "link", "folder/file", "a/up/a/file"):
        assert await use.text("read_file", path=path) == "here"
    assert await use.text("read_file", path=str(use.folder / "a/file")) == "here"


async def test_a_link_within_the_workspace_is_written_through(use: Workspace) -> None:
    put(use, "a/file", "old")
    (use.folder / "link").symlink_to("a/file")
    (use.folder / "new").symlink_to("a/other")

    for link in ("link", "new"):
        await use.text("write_file", path=link, content="through")
        assert (use.folder / link).is_symlink()
        assert (use.folder / link).read_text() == "through"


#: Paths out of the workspace; `{out}` is the folder outside.
WAYS_OUT = [
    "{out}/canary",
    "../../outside/canary",
    "a/../../../outside/canary",
    "to-file",
    "to-folder/canary",
    "relative/canary",
    "a/to-link",
    "/etc/passwd",
    "/proc/self/environ",
    "{folder}/../../outside/canary",
    "{folder}-other/canary",
]


@pytest.mark.parametrize("way", WAYS_OUT)
async def test_no_path_leads_out_of_the_workspace(use: Workspace, outside: Path, way: str) -> None:
    (use.folder / "a").mkdir(parents=True)
    (use.folder / "to-file").symlink_to(outside / "canary")
    (use.folder / "to-folder").symlink_to(outside)
    (use.folder / "relative").symlink_to("../../outside")
    (use.folder / "a" / "to-link").symlink_to("../to-file")
    path = way.format(out=outside, folder=use.folder)

    for tool, more in (
        ("read_file", {}),
        ("write_file", {"content": "overwritten"}),
        ("list_files", {}),
    ):
        refusal = "This path is outside the workspace. Use a path within it."
        if tool == "write_file" and ".." in path:
            refusal = f"{path} goes up. Use a path from the workspace, without `..`."
        assert await use.refusal(tool, path=path, **more) == refusal
    assert (outside / "canary").read_text() == CANARY


async def test_no_path_leads_out_while_a_process_exchanges_folders_for_links(
    use: Workspace, outside: Path
) -> None:
    put(use, "a/canary", "inside")
    (use.folder / "link").symlink_to(outside)
    reader = use.offers["read_file"]

    with exchanging(use.folder / "a", use.folder / "link"):
        reads = [await reader.run({"path": "a/canary"}) for _ in range(3000)]
        for _ in range(300):
            await use("write_file", path="a/new", content="x")
            await use("list_files", path="a")

    assert {read.text for read in reads if not read.failed} == {"inside"}
    assert any(read.failed for read in reads)
    assert os.listdir(outside) == ["canary"]  # noqa: PTH208 (names are all there is to see)


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[None]:
    """Run a process that exchanges two names in a loop."""
    argv = [sys.executable, "-I", "-c", EXCHANGE, str(one), str(other)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        try:
            yield
        finally:
            process.kill()


async def test_a_path_that_is_missing_or_not_a_file_is_refused_with_the_reason(
    use: Workspace,
) -> None:
    put(use, "file")
    (use.folder / "folder").mkdir()
    (use.folder / "loop").symlink_to("loop")

    assert await use.refusal("read_file", path="missing") == "File or folder not found: missing."
    assert (
        await use.refusal("read_file", path="missing/file")
        == "File or folder not found: missing/file."
    )
    assert "is a folder" in await use.refusal("read_file", path="folder")
    assert "is a folder" in await use.refusal("read_file", path=".")
    assert "is a folder" in await use.refusal("write_file", path="folder", content="")
    assert "not a folder" in await use.refusal("read_file", path="file/below")
    assert "not a folder" in await use.refusal("write_file", path="file/below", content="")
    assert "too many links" in await use.refusal("read_file", path="loop")
    assert "too long" in await use.refusal("read_file", path="x" * 300)
    assert "too long" in await use.refusal("write_file", path="x/" * 100, content="")
    assert await use.refusal("read_file", path="x\0y")
    assert await use.refusal("list_files", path="file")


async def test_pipes_sockets_and_devices_are_refused_without_blocking(use: Workspace) -> None:
    use.folder.mkdir(parents=True)
    os.mkfifo(use.folder / "pipe")
    (use.folder / "device").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(use.folder / "socket"))

        for path in ("pipe", "socket"):
            assert "not a file" in await use.refusal("read_file", path=path)
            assert "not a file" in await use.refusal("write_file", path=path, content="x")
        assert "outside" in await use.refusal("read_file", path="device")
        assert "pipe  pipe" in await use.text("list_files")


async def test_a_file_is_read_in_parts(use: Workspace) -> None:
    put(use, "lines", "".join(f"line {number}\n" for number in range(1, 5001)))

    first = await use.text("read_file", path="lines")
    assert first.startswith("line 1\nline 2\n")
    assert first.endswith("line 2000\n[More lines follow. Continue with offset 2001.]")
    assert (await use.text("read_file", path="lines", offset=4999)) == "line 4999\nline 5000\n"
    assert (await use.text("read_file", path="lines", offset=7, limit=1)).startswith(
        "line 7\n[More lines follow"
    )
    assert "fewer than 6000" in await use.text("read_file", path="lines", offset=6000)
    assert await use.refusal("read_file", path="lines", offset=0)
    assert await use.refusal("read_file", path="lines", limit=1_000_000)


async def test_the_text_read_at_once_is_bounded(use: Workspace) -> None:
    put(use, "long-lines", f"{'x' * 20_000}\n" * 4)
    put(use, "one-line", "x" * 200_000 + "\nnext\n")

    text = await use.text("read_file", path="long-lines")
    assert text.endswith("[More lines follow. Continue with offset 3.]")
    text = await use.text("read_file", path="one-line")
    assert "Line 1 is too long to show whole" in text
    assert len(text) < MAX_SHOWN_CHARS + 200
    assert await use.text("read_file", path="one-line", offset=2) == "next\n"


async def test_reading_far_into_a_huge_file_is_refused(use: Workspace) -> None:
    with put(use, "sparse", "text\n" * 2000).open("r+b") as file:
        file.truncate(MAX_OFFSET_BYTES * 1000)

    assert "too far" in await use.text("read_file", path="sparse", offset=100_000)


async def test_a_binary_file_is_refused_and_other_encodings_are_replaced(use: Workspace) -> None:
    put(use, "binary", b"\x7fELF\0\0")
    put(use, "latin", "grüß".encode("latin-1"))
    put(use, "empty", "")

    assert "is not text" in await use.refusal("read_file", path="binary")
    assert await use.text("read_file", path="latin") == "gr��"
    assert await use.text("read_file", path="empty") == "[The file is empty.]"


async def test_content_above_the_limit_is_refused(use: Workspace) -> None:
    assert "limit" in await use.refusal("write_file", path="x", content="x" * (MAX_WRITE_BYTES + 1))
    assert "limit" in await use.refusal("write_file", path="x", content="ü" * MAX_WRITE_BYTES)
    assert not (use.folder / "x").exists()


@pytest.mark.parametrize(
    ("number", "error", "words"),
    [
        (errno.ENOSPC, MachineFailed, "The disk is full. Nothing was written."),
        (errno.EDQUOT, MachineFailed, "The disk is full. Nothing was written."),
        (errno.EACCES, NotAllowed, "No access to x: Permission denied."),
        (errno.EROFS, NotAllowed, "No access to x: Read-only file system."),
        (errno.EIO, MachineFailed, "x: Input/output error."),
    ],
)
def test_an_error_of_the_system_is_explained(
    number: int, error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught, explain_errors("x"):
        raise OSError(number, "")

    assert str(caught.value) == words


async def test_a_write_that_fails_leaves_the_old_content(use: Workspace) -> None:
    put(use, "file", "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        assert "File too large" in await use.refusal("write_file", path="file", content="x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert [path.name for path in use.folder.iterdir()] == ["file"]
    assert await use.text("read_file", path="file") == "old"


async def test_a_workspace_that_cannot_be_created_is_reported() -> None:
    nowhere = Workspace(Path("/dev/null/workspace"))

    for tool, more in (
        ("read_file", {"path": "x"}),
        ("write_file", {"path": "x", "content": "x"}),
        ("run_command", {"command": "true"}),
    ):
        assert "not a folder" in await nowhere.refusal(tool, **more)
    assert nowhere.shell.asked == []


async def test_a_folder_is_listed_with_sizes_and_times(use: Workspace) -> None:
    os.utime(put(use, "b.txt", "x" * 1234), (0, 0))
    put(use, "a/file")
    (use.folder / "link").symlink_to("/etc/passwd")
    put(use, "naïve\nname")

    lines = (await use.text("list_files")).splitlines()

    assert lines[:2] == ["a/", "b.txt  1,234 bytes  1970-01-01 00:00 UTC"]
    assert [line.split("  ")[:2] for line in lines[2:]] == [
        ["link", "link"],
        ["naïve?name", "4 bytes"],
    ]
    assert (await use.text("list_files", path="a")).startswith("file  4 bytes")


async def test_a_file_name_that_is_not_utf_8_is_listed_with_a_replacement(use: Workspace) -> None:
    put(use, "folder/caf\udce9.txt")
    put(use, "folder/\udcff")

    text = await use.text("list_files", path="folder")

    assert [line.split("  ")[0] for line in text.splitlines()] == ["caf�.txt", "�"]
    assert "caf�.txt" in await use.text("list_files", glob="**/*.txt")
    # The text can be sent to a model and stored.
    assert text.encode()


@pytest.mark.parametrize(
    ("glob", "matching"),
    [
        ("*.py", ["a.py"]),
        ("**/*.py", ["a.py", "x/b.py", "x/y/c.py"]),
        ("x/*", ["x/b.py", "x/y/"]),
        ("x/**", ["x/b.py", "x/y/", "x/y/c.py", "x/y/d.txt"]),
        ("**/y/*", ["x/y/c.py", "x/y/d.txt"]),
        ("?.py", ["a.py"]),
        ("[b-z]*", ["x/"]),
        ("nothing", ["[No files.]"]),
    ],
)
async def test_a_pattern_selects_files(use: Workspace, glob: str, matching: list[str]) -> None:
    for path in ("a.py", "x/b.py", "x/y/c.py", "x/y/d.txt"):
        put(use, path)

    lines = (await use.text("list_files", glob=glob)).splitlines()

    assert [line.split("  ")[0] for line in lines] == matching


async def test_a_listing_is_bounded(use: Workspace) -> None:
    for number in range(MAX_LISTED + 10):
        put(use, f"file-{number:04}")

    lines = (await use.text("list_files")).splitlines()

    assert len(lines) == MAX_LISTED + 1
    assert lines[-1].startswith("[The list is incomplete")


@pytest.mark.parametrize("glob", ["../*", "**/**/**/**/x", "x/" * 100])
async def test_a_pattern_that_leads_out_or_takes_long_is_refused(use: Workspace, glob: str) -> None:
    assert "not a valid pattern" in await use.refusal("list_files", glob=glob)


async def test_a_pattern_does_not_follow_links(use: Workspace, outside: Path) -> None:
    put(use, "file")
    (use.folder / "out").symlink_to(outside)

    assert "canary" not in await use.text("list_files", glob="**")


async def test_a_command_runs_in_the_workspace_with_its_timeout(use: Workspace) -> None:
    assert await use.text("run_command", command="make") == "out\n[Exit code 0.]"
    await use.text("run_command", command="make all", timeout=600)

    assert use.shell.asked == [
        ("make", use.folder, timedelta(seconds=120)),
        ("make all", use.folder, timedelta(minutes=10)),
    ]
    assert use.folder.is_dir()
    assert await use.refusal("run_command", command="make", timeout=601)
    assert await use.refusal("run_command", command="")


@pytest.mark.parametrize(
    ("ran", "text"),
    [
        (CommandResult(output="", code=0), "[Exit code 0.]"),
        (CommandResult(output="no newline", code=2), f"no newline\n[Exit code 2.]{NO_NETWORK}"),
        (CommandResult(output="", code=None, signal=9), f"[Ended by signal 9.]{NO_NETWORK}"),
        (
            CommandResult(output="x\n", code=None, signal=15, timed_out=True),
            f"x\n[Ended: timeout after 120 seconds.]{NO_NETWORK}",
        ),
        (
            CommandResult(output="x\n", code=None, signal=15, output_exceeded=True),
            "x\n[Ended: it wrote too much output. Redirect the output to a file, or reduce it.]"
            + NO_NETWORK,
        ),
    ],
)
async def test_the_result_of_a_command_names_how_it_ended(
    tmp_path: Path, ran: CommandResult, text: str
) -> None:
    assert await Workspace(tmp_path, ran).text("run_command", command="x") == text


async def test_a_command_is_given_its_cage_and_the_network_it_asked_for(tmp_path: Path) -> None:
    failed = CommandResult(output="", code=1)
    for cage in Cage:
        use = Workspace(tmp_path, failed, replace(ALONE, cage=cage))
        alone = await use.text("run_command", command="x")
        reaching = await use.text("run_command", command="x", network=True)

        assert use.shell.bounds == [
            CommandBounds(cage=cage),
            CommandBounds(cage=cage, network=True),
        ]
        assert reaching == "[Exit code 1.]"
        assert ("It could not write in the workspace." in alone) == (cage is Cage.LOOK)
        assert use.offers["run_command"].tool.cage is cage


async def test_where_there_are_others_a_command_sees_no_processes(tmp_path: Path) -> None:
    async def has_others() -> bool:
        return True

    use = Workspace(tmp_path, terms=replace(ALONE, has_others=has_others))
    await use.text("run_command", command="ps")

    assert use.shell.bounds == [CommandBounds(cage=Cage.WORK, sees_processes=False)]


async def test_without_cages_each_command_needs_approval_and_says_why(tmp_path: Path) -> None:
    shell = RecordingShell(CommandResult(output="", code=1))
    shell.cage_missing = "This kernel is too old."
    offers = workspace_offers(tmp_path, tmp_path / "kept", shell, RecordingNetwork(), ALONE)
    (offer,) = [offer for offer in offers if offer.tool.name == "run_command"]
    call = ToolCall(offer.tool, {"command": "ls"})

    assert (offer.tool.cage, (await offer.run({"command": "ls"})).text) == (None, "[Exit code 1.]")
    assert isinstance(decide(call, (), allowed=None, in_doubt=False, now=NOON), Ask)
    assert show_call(call).endswith("\n    ls\n(This kernel is too old.)")


async def test_a_page_is_fetched_from_the_approved_host_only(use: Workspace) -> None:
    assert await use.text("fetch_url", url="https://example.com/a") == (
        "https://example.com/a (text/html, status 200)\n\nwords"
    )
    assert (await use.text("fetch_url", url="https://example.com/long")).endswith(
        "words\n[The page is longer; the rest is left out.]"
    )
    assert use.network.asked[0] == ("https://example.com/a", False)
    assert await use.refusal("fetch_url", url="http://inner/") == "inner is not a public address."


async def test_why_a_page_was_not_fetched_is_marked_as_outside_text(use: Workspace) -> None:
    result = await use("fetch_url", url="http://inner/")

    assert result.failed
    assert result.outside


async def test_commands_and_file_tools_use_the_same_folder(tmp_path: Path, outside: Path) -> None:
    folder = tmp_path / "workspace"
    offers = workspace_offers(folder, tmp_path, ConfinedShell(), RecordingNetwork(), ALONE)
    tools = {offer.tool.name: offer for offer in offers}

    await tools["write_file"].run({"path": "in.txt", "content": "b\na\n"})
    ran = await tools["run_command"].run(
        {"command": f"sort in.txt | tee out.txt; cat {outside}/canary; ls -a"}
    )
    read = await tools["read_file"].run({"path": "out.txt"})

    assert read.text == "a\nb\n"
    assert "Permission denied" in ran.text
    assert CANARY not in ran.text
