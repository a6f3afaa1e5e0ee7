"""Sessions with programs on this machine: their cage, their faults, and their end."""

import asyncio
import json
import os
import secrets
import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from support.mcp_peers.sessions import Pauses, session
from support.programs.process_table import alive, wait_until_gone
from support.stage.until import until

from backburner.core.errors import CallInDoubt, ConnectionFailed
from backburner.ports import StdioProgram, ToolResult
from backburner.process.piped_program import PipedPrograms

PROGRAM = Path(__file__).parents[2] / "support" / "mcp_peers" / "bad_program.py"
#: Without a namespace of its own, the kernel says the first.
REFUSALS = ("Permission denied", "Read-only file system")
SHORT = timedelta(seconds=0.3)
LONGER = timedelta(seconds=5)
WAITING = timedelta(seconds=20)


def program(
    mode: str,
    word: str = "",
    *,
    environment: dict[str, str] | None = None,
    network: bool = False,
    readable: tuple[str, ...] = (),
    writable: tuple[str, ...] = (),
) -> StdioProgram:
    return StdioProgram(
        command=(sys.executable, "-I", str(PROGRAM), mode, word),
        environment=environment or {},
        network=network,
        readable=(sys.prefix, sys.base_prefix, str(PROGRAM), *readable),
        writable=writable,
    )


async def do(asked: dict[str, object], given: StdioProgram) -> str:
    async with session(given) as opened:
        result = await opened.call("do", asked)
    assert isinstance(result, ToolResult)
    return result.text


async def test_a_program_is_called() -> None:
    async with session(program("behaves")) as opened:
        assert [tool.name for tool in (await opened.list_tools()).tools] == ["do"]
        assert await opened.call("do", {}) == ToolResult("called")


async def test_its_environment_is_what_the_operator_gives_and_nothing_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CANARY_OF_OURS", "canary")

    given = json.loads(
        await do({"environment": True}, program("behaves", environment={"A": "b", "LANG": "C"}))
    )

    assert set(given) <= {"A", "HOME", "LANG", "LC_CTYPE", "PATH", "TMPDIR"}
    assert (given["A"], given["LANG"]) == ("b", "C")
    assert given["HOME"] != os.environ["HOME"]
    assert not await asyncio.to_thread(Path(given["HOME"]).exists)


async def test_it_reads_and_writes_only_the_folders_that_it_is_given(tmp_path: Path) -> None:
    for name in ("readable", "writable", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    cage = program(
        "behaves",
        readable=(str(tmp_path / "readable"),),
        writable=(str(tmp_path / "writable"),),
    )
    paths = {name: str(tmp_path / name / "file") for name in ("readable", "writable", "other")}

    async with session(cage) as opened:
        read = {
            name: (await _text(opened.call("do", {"path": path}))) for name, path in paths.items()
        }
        written = {
            name: (await _text(opened.call("do", {"write": path}))) for name, path in paths.items()
        }

    assert read == {"readable": "readable", "writable": "writable", "other": "Permission denied"}
    assert written["writable"] == "written"
    assert written["other"] in REFUSALS
    assert (tmp_path / "readable" / "file").read_text() == "readable"


async def _text(call: object) -> str:
    result = await call  # type: ignore[misc]
    assert isinstance(result, ToolResult)
    return result.text


@pytest.mark.parametrize("network", [False, True])
async def test_it_has_the_network_only_if_the_operator_says_so(*, network: bool) -> None:
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as web:
        port = web.sockets[0].getsockname()[1]
        said = await do({"port": port}, program("behaves", network=network))

    assert (said == "connected") is network


async def test_a_program_that_is_not_there_is_a_permanent_fault() -> None:
    pauses = Pauses()
    missing = StdioProgram(command=("/nowhere/server",))
    async with session(missing, pauses=pauses) as opened:
        with pytest.raises(
            ConnectionFailed, match=r"Peer was not started: Program not found"
        ) as it:
            await opened.call("do", {})

    assert it.value.permanent
    assert pauses.taken == []


async def test_without_a_cage_a_program_is_not_run(tmp_path: Path) -> None:
    start = PipedPrograms(missing=lambda: "Landlock is missing.").start
    given = program("behaves", writable=(str(tmp_path),))
    async with session(given, start=start) as opened:
        with pytest.raises(ConnectionFailed, match=r"cannot be confined on this system\. Landlock"):
            await opened.call("do", {"write": str(tmp_path / "file")})

    assert not await asyncio.to_thread((tmp_path / "file").exists)


@pytest.mark.parametrize("given", ["", "data", "data/master_keys"])
async def test_a_program_that_could_read_our_data_is_not_run(tmp_path: Path, given: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "master_keys").write_text("canary")
    start = PipedPrograms(hidden=[data]).start
    reading = program("behaves", readable=(str(tmp_path / given),))
    async with session(reading, start=start) as opened:
        with pytest.raises(ConnectionFailed, match=r"was not run: it could read .*/data\."):
            await opened.call("do", {"path": str(data / "master_keys")})


async def test_the_operator_can_allow_programs_without_a_cage(tmp_path: Path) -> None:
    start = PipedPrograms(unconfined=True, missing=lambda: "Landlock is missing.").start
    async with session(program("behaves"), start=start) as opened:
        assert await opened.call("do", {"write": str(tmp_path / "file")}) == ToolResult("written")


async def test_a_program_that_exits_at_once_is_started_again_and_its_words_are_told() -> None:
    pauses = Pauses()
    async with session(program("exits at once"), pauses=pauses) as opened:
        with pytest.raises(ConnectionFailed) as caught:
            await opened.call("do", {})

    # For its owner; agents read the message as words of ours.
    assert caught.value.hint == "Its errors: cannot find the settings"
    assert caught.value.message == "Peer exited with code 4."
    assert len(pauses.taken) == 3


async def test_a_program_that_never_answers_is_given_up() -> None:
    word = secrets.token_hex(8)
    async with session(program("never answers", word), connect_timeout=SHORT) as opened:
        with pytest.raises(ConnectionFailed, match=r"Peer did not answer within 0\.3 seconds"):
            await opened.call("do", {})

    wait_until_gone(word)


async def test_a_program_that_writes_something_else_is_given_up_with_what_it_writes() -> None:
    async with session(program("floods")) as opened:
        with pytest.raises(ConnectionFailed) as caught:
            await opened.call("do", {})

    assert caught.value.message == "Peer does not speak MCP."
    assert caught.value.hint == "It wrote lines that are not MCP, such as 'not MCP'."


async def test_a_program_that_writes_blank_lines_for_ever_does_not_speak_mcp() -> None:
    async with session(program("floods", " "), connect_timeout=LONGER) as opened:
        with pytest.raises(ConnectionFailed) as caught:
            await opened.call("do", {})

    assert caught.value.message == "Peer does not speak MCP."


async def test_a_greeting_does_no_harm() -> None:
    assert await do({}, program("greets")) == "called"


async def test_a_program_that_fills_stderr_is_not_held_up() -> None:
    assert await do({}, program("fills stderr")) == "called"


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("dies in a call", "Peer was ended by signal 9."),
        ("exits in a call", "Peer exited with code 3."),
        ("hangs in a call", "Peer did not answer within 0.3 seconds."),
        ("writes a line without end in a call", "Peer wrote a message of more than 32 MB."),
        ("closes its output in a call", "Peer was ended."),
    ],
)
async def test_a_call_that_broke_off_is_in_doubt(mode: str, said: str) -> None:
    within = SHORT if "hangs" in mode else WAITING
    async with session(program(mode)) as opened:
        await opened.list_tools()
        with pytest.raises(CallInDoubt) as caught:
            await opened.call("do", {}, within=within)

    assert str(caught.value).startswith(said)


async def test_a_program_that_died_is_started_again_for_the_next_call() -> None:
    word = secrets.token_hex(8)
    async with session(program("behaves", word)) as opened:
        await opened.call("do", {})
        # The reapers name it as well, and end when it has.
        os.kill(max(alive(word)), signal.SIGKILL)
        await asyncio.to_thread(wait_until_gone, word)
        await until(lambda: opened._live and not opened._live.is_open)

        assert await opened.call("do", {}) == ToolResult("called")


async def test_its_errors_do_not_show_the_secrets_that_it_was_given() -> None:
    given = program("dies in a call", environment={"KEY": "canary-secret"})
    async with session(given) as opened:
        with pytest.raises(ConnectionFailed) as caught:
            await opened.call("do", {}, repeatable=True)

    assert "gone" in caught.value.hint
    assert "gone" not in caught.value.message
    assert "canary" not in str(caught.value)


TOKEN, PASSWORD = "sk-live-0123456789", "correct-horse-battery"
SECRETS = {
    "NOTES_TOKEN": TOKEN,
    "NOTES_PAT": "pat-0123456789",
    "NOTES_URL": f"postgres://ann:{PASSWORD}@db.example/notes",
}
#: They are no secrets: by their names, and by its length.
OTHERS = {"NOTES_REGION": "ap-southeast-2", "AUTHOR_NAME": "Ann of Example", "A_KEY": "short-key"}


async def test_secrets_of_its_environment_that_it_repeats_reach_no_agent() -> None:
    given = program("behaves", environment={**SECRETS, **OTHERS})

    repeated = json.loads(await do({"environment": True}, given))

    assert {name: repeated[name] for name in SECRETS} == dict.fromkeys(SECRETS, "[hidden]")
    assert {name: repeated[name] for name in OTHERS} == OTHERS


@pytest.mark.parametrize("word", [TOKEN, PASSWORD])
async def test_what_it_writes_besides_messages_is_shown_without_its_secrets(word: str) -> None:
    async with session(program("floods", f"using {word}", environment=SECRETS)) as opened:
        with pytest.raises(ConnectionFailed) as caught:
            await opened.call("do", {})

    assert "using [hidden]" in caught.value.hint
    assert word not in str(caught.value)


@pytest.mark.parametrize("mode", ["has children", "stays"])
async def test_its_processes_end_with_the_session(mode: str) -> None:
    word = secrets.token_hex(8)
    async with session(program(mode, word)) as opened:
        await opened.call("do", {})
        assert alive(word)

    wait_until_gone(word)


HOLDER = """
import asyncio, sys
from support.mcp_peers.sessions import session
from test_programs import program

async def hold():
    async with session(program("has children", sys.argv[1])) as opened:
        await opened.call("do", {})
        print("called", flush=True)
        await asyncio.sleep(600)

asyncio.run(hold())
"""


async def test_its_processes_end_when_ours_is_killed() -> None:
    word = secrets.token_hex(8)
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    holder = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        HOLDER,
        word,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"called\n"

    holder.kill()
    await holder.wait()

    await asyncio.to_thread(wait_until_gone, word)
