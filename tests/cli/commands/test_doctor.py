"""`backburner doctor`: problems are found, and each comes with its fix."""

import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.programs.programs import Ended, Start
from support.programs.signed_in import SignedInOwner
from support.requirements import requirement
from support.servers.model_servers import ModelServer, model_server
from support.stage.scene import Scene

from backburner.app.clock import Clock
from backburner.app.machines import CLAUDE_MEMORY_BYTES
from backburner.cli.commands.doctor import (
    check_confinement,
    check_limit_wall,
    check_process_wall,
)
from backburner.cli.findings import Level
from backburner.cli.machine_checks import check_memory
from backburner.process.confinement import (
    confinement_gaps,
    confinement_missing,
    control_groups,
    gives_process_namespace,
)
from backburner.process.memory import free_memory
from backburner.settings import load
from backburner.store.lifecycle.opening import open_database

CANARY = "sk-ant-canary-314159265358979"
Call = Callable[..., Ended]
#: Runs the doctor as if the libraries of the engines were not installed.
WITHOUT_EXTRAS = """
import sys
sys.modules["claude_agent_sdk"] = sys.modules["pydantic_ai"] = None
from backburner.cli.main import main
main(["doctor", "--offline"])
"""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BACKBURNER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BACKBURNER_PORT", "0")
    return tmp_path / "data"


@pytest.fixture
def profiles(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found = {
        "claude": {"engine": "claude", "key": CANARY, "address": server.address},
        "local": {"engine": "openai", "model": "small", "address": f"{server.address}/v1"},
    }
    monkeypatch.setenv("BACKBURNER_PROFILES", json.dumps(found))
    monkeypatch.setenv("BACKBURNER_BACKGROUND_PROFILE", "local")
    return found


def line_of(ended: Ended, check: str) -> str:
    (line,) = [line for line in ended.out if line[5:].startswith(check)]
    return line


def test_a_fresh_installation_is_ok_and_suggests_setup(call: Call, data: Path) -> None:
    ended = call("doctor")

    assert (ended.code, ended.err) == (0, [])
    assert "first start creates it" in line_of(ended, "data folder")
    assert "empty" in line_of(ended, "database")
    assert line_of(ended, "profile demo").startswith("[ok]")
    assert line_of(ended, "models in use").endswith("To use a real model, run `backburner setup`.")
    assert not data.exists()


def test_folders_that_accounts_must_not_have_are_a_problem(
    call: Call, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not [line for line in call("doctor", "--offline").out if line[5:].startswith("folders")]
    monkeypatch.setenv("BACKBURNER_FOLDERS", "/srv/{login}")
    good = call("doctor", "--offline")
    monkeypatch.setenv("BACKBURNER_FOLDERS", "/srv/{login}, /srv/{login}/app")
    nested = call("doctor", "--offline")
    monkeypatch.setenv("BACKBURNER_FOLDERS", "/etc/{login}")
    system = call("doctor", "--offline")

    assert not data.exists()
    assert line_of(good, "folders").endswith("each account has /srv/{login}.")
    assert (good.code, nested.code, system.code) == (0, 1, 1)
    assert "can meet" in line_of(nested, "folders")
    assert "a folder of the system" in line_of(system, "folders")


def test_a_clock_that_ran_ahead_is_reported(call: Call, data: Path) -> None:
    data.mkdir()
    ahead = SetClock(now=Clock().now() + timedelta(days=1))
    with closing(open_database(f"sqlite:///{data / 'backburner.sqlite3'}", ahead)) as database:
        scene = Scene(database)
        scene.clock.now = Clock().now()
        scene.chat()
    right = call("doctor", "--offline")
    with closing(open_database(f"sqlite:///{data / 'backburner.sqlite3'}", ahead)) as database:
        scene.database = database
        scene.clock.now = ahead.now
        scene.chat()
    ended = call("doctor", "--offline")

    assert not any(line[5:].startswith("clock") for line in right.out)
    assert ended.code == 0
    assert f"{ahead.now:%Y-%m-%d %H:%M} UTC" in line_of(ended, "clock")
    assert "recurring work" in line_of(ended, "clock")


@pytest.mark.usefixtures("profiles")
def test_every_model_is_contacted(call: Call, server: ModelServer) -> None:
    ended = call("doctor")

    assert (ended.code, ended.err) == (0, [])
    claude = line_of(ended, "profile claude")
    assert claude.startswith("[ok]")
    assert "Claude Code 2." in claude
    assert claude.endswith("claude-sonnet-5-5 answers.")
    assert line_of(ended, "profile local").endswith("small answers.")
    assert "chats use claude; background work uses local." in line_of(ended, "models in use")
    assert {asked.path for asked in server.asked} == {"/v1/messages", "/v1/chat/completions"}
    assert CANARY not in "".join(ended.out)


@pytest.mark.usefixtures("profiles")
def test_offline_no_model_is_contacted(call: Call, server: ModelServer) -> None:
    assert call("doctor", "--offline").code == 0
    assert server.asked == []


@pytest.mark.usefixtures("profiles")
@pytest.mark.parametrize(
    ("status", "code", "mark"), [(401, 1, "[!!]"), (500, 1, "[!!]"), (429, 0, "[--]")]
)
def test_a_model_that_fails_is_a_problem_unless_it_is_only_rate_limited(
    call: Call, server: ModelServer, status: int, code: int, mark: str
) -> None:
    server.answers["/v1/messages"] = (status, {"error": {"message": f"no {CANARY}"}})
    ended = call("doctor")

    assert ended.code == code
    assert line_of(ended, "profile claude").startswith(mark)
    assert CANARY not in "".join(ended.out)


@pytest.mark.usefixtures("profiles")
def test_json_has_the_same_findings(call: Call, server: ModelServer) -> None:
    server.answers["/v1/chat/completions"] = (404, {"error": {"message": "no such model"}})
    # The first look at the system writes to the log, which is mixed into the output here.
    for look in (gives_process_namespace, control_groups):
        look()
    ended = call("doctor", "--json")
    report = json.loads("\n".join(ended.out))

    assert (ended.code, report["ok"]) == (1, False)
    (local,) = [one for one in report["findings"] if one["check"] == "profile local"]
    assert local["level"] == "problem"
    assert "Model not found: 'small'" in local["message"]
    assert local["hint"] == "Choose a model that the server offers."
    assert CANARY not in "".join(ended.out)


@pytest.mark.usefixtures("profiles")
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    start: Start,
) -> None:
    ended = start(command=(sys.executable, "-c", WITHOUT_EXTRAS)).end()

    assert ended.code == 1
    assert line_of(ended, "profile claude").endswith("pip install 'backburner[claude]'")
    assert line_of(ended, "profile local").endswith("pip install 'backburner[openai]'")


def test_invalid_settings_are_the_only_finding(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_PROFILE", "clod")
    ended = call("doctor")

    assert ended.code == 1
    assert ended.out[-1].startswith("[!!] settings  `profile` is 'clod'")


def test_a_models_file_that_others_can_read_is_a_problem(call: Call, data: Path) -> None:
    data.mkdir()
    models = data / "models.toml"
    models.write_text(f'[profiles.claude]\nengine = "claude"\nkey = "{CANARY}"\n')
    models.chmod(0o640)
    ended = call("doctor", "--offline")

    assert ended.code == 1
    assert line_of(ended, "models file").endswith(f"Run: chmod 600 {models}")
    models.chmod(0o600)
    assert call("doctor", "--offline").code == 0


@pytest.mark.parametrize(("mode", "code"), [(0o644, 1), (0o600, 0)])
def test_a_settings_file_with_secrets_that_others_can_read_is_a_problem(
    call: Call, tmp_path: Path, mode: int, code: int
) -> None:
    config = tmp_path / "backburner.toml"
    config.write_text(f'[profiles.claude]\nengine = "claude"\nkey = "{CANARY}"\n')
    config.chmod(mode)

    ended = call("doctor", "--offline", "--config", str(config))

    assert ended.code == code
    assert line_of(ended, "settings file").endswith(f"chmod 600 {config}") == bool(code)
    config.write_text("[profiles.demo]\nengine = 'demo'\n")
    assert call("doctor", "--offline", "--config", str(config)).code == 0


def test_a_key_sent_over_plain_http_is_noted(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    far = {"engine": "openai", "model": "m", "address": "http://models.example.org", "key": CANARY}
    monkeypatch.setenv("BACKBURNER_PROFILES", json.dumps({"far": far}))
    ended = call("doctor", "--offline")

    assert ended.code == 0
    assert line_of(ended, "profile far").startswith("[--]")
    assert line_of(ended, "profile far").endswith("use an https address.")


def test_an_unusable_data_folder_or_database_is_a_problem(
    call: Call, data: Path, tmp_path: Path
) -> None:
    data.write_text("")
    (tmp_path / "text").write_text("This is no database.")
    ended = call("doctor", "--database-url", f"sqlite:///{tmp_path / 'text'}")

    assert ended.code == 1
    assert line_of(ended, "data folder").startswith("[!!]")
    assert "is not a SQLite database" in line_of(ended, "database")


def test_the_password_of_a_database_is_not_shown(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_DATABASE_URL", f"postgresql://me:{CANARY}@127.0.0.1:9/b")
    ended = call("doctor")

    assert ended.code == 1
    assert line_of(ended, "database").startswith("[!!]")
    assert CANARY not in "".join(ended.out)


def test_a_running_server_is_found_and_not_disturbed(
    call: Call, start: Start, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start("up", "--data", data)
    port = running.wait_until_ready().rsplit(":", 1)[1]
    monkeypatch.setenv("BACKBURNER_PORT", port)
    ended = call("doctor")

    assert ended.code == 0
    assert f"is running at http://127.0.0.1:{port} with this" in line_of(ended, "server")
    assert "in use by a running server" in line_of(ended, "database")
    assert running.end(signal.SIGTERM).code == 0


def test_the_server_of_this_folder_is_found_wherever_it_listens(
    call: Call, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data.mkdir()
    with serving() as mine, serving() as others:
        write_client_file(data, mine)
        monkeypatch.setenv("BACKBURNER_PORT", others.rsplit(":", 1)[1])
        found = line_of(call("doctor", "--offline"), "server")
        models = data / "models.toml"
        models.write_text('profile = "small"\n[profiles.small]\nengine = "demo"\n')
        models.chmod(0o600)
        older = line_of(call("doctor", "--offline"), "server")
        write_client_file(data, "http://127.0.0.1:1")
        unknown = line_of(call("doctor", "--offline"), "server")

    assert (
        found == f"[ok] server         Backburner 9.9 is running at {mine} with this data folder."
    )
    assert "It has other models than the settings. Run `" in older
    assert older.endswith(" models reload`.")
    assert older.startswith("[--]")
    assert f"Backburner 9.9 is running at {others}, with another data folder" in unknown


def write_client_file(data: Path, address: str) -> None:
    path = data / "client.toml"
    path.write_text(f'address = "{address}"\ntoken = "bb_x"\n')
    path.chmod(0o600)


def test_a_running_server_that_is_not_ready_is_a_problem(call: Call, data: Path) -> None:
    data.mkdir()
    with serving(ready=503) as mine:
        write_client_file(data, mine)
        found = line_of(call("doctor", "--offline"), "server")

    assert not found.startswith("[ok]")
    assert "with this data folder, but is not ready." in found


@pytest.mark.parametrize("health", [b"{}", b"[]", b"1"])
def test_another_program_at_the_stored_address_is_no_server(
    call: Call, data: Path, monkeypatch: pytest.MonkeyPatch, health: bytes
) -> None:
    data.mkdir()
    with serving(health=health) as other:
        write_client_file(data, other)
        monkeypatch.setenv("BACKBURNER_PORT", other.rsplit(":", 1)[1])
        found = line_of(call("doctor", "--offline"), "server")

    assert "Another program uses" in found


MODELS = b'{"items": [{"profile": "demo", "chats": true, "background": true}]}'


@contextmanager
def serving(*, ready: int = 200, health: bytes = b'{"version": "9.9"}') -> Iterator[str]:
    """Answer as a server does that is asked for its health."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(ready if self.path == "/ready" else 200)
            self.end_headers()
            self.wfile.write(MODELS if self.path == "/api/models" else health)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_port_used_by_another_program_is_a_problem(
    call: Call, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = server.address.rsplit(":", 1)[1]
    monkeypatch.setenv("BACKBURNER_PORT", port)
    taken = call("doctor")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = str(closed.getsockname()[1])
    monkeypatch.setenv("BACKBURNER_PORT", port)
    free = call("doctor")

    assert taken.code == 1
    assert "Another program uses" in line_of(taken, "server")
    assert free.code == 0
    assert f"127.0.0.1:{port} is free" in line_of(free, "server")


def test_memory_for_too_few_runs_is_noted_with_the_concurrency_to_set() -> None:
    settings = load(profiles={"claude": {"engine": "claude", "key": CANARY}})

    assert check_memory(settings, 5 * CLAUDE_MEMORY_BYTES).level is Level.OK
    tight = check_memory(settings, 2 * CLAUDE_MEMORY_BYTES)
    assert (tight.level, tight.hint) == (Level.NOTE, "Set concurrency to 2; 5 are allowed now.")
    assert check_memory(load(), 0).level is Level.OK
    assert check_memory(load(), None).level is Level.NOTE


def test_each_gap_of_the_confinement_is_noted() -> None:
    gaps = ("Signals are not blocked.", "Files can be truncated.")
    noted = list(check_confinement(None, gaps))
    (complete,) = check_confinement(None, ())
    (missing,) = check_confinement("This kernel has no Landlock.", gaps)

    assert [(one.level, one.message) for one in noted] == [(Level.NOTE, gap) for gap in gaps]
    assert complete.level is Level.OK
    assert (missing.level, missing.message) == (Level.PROBLEM, "This kernel has no Landlock.")


def test_the_level_of_each_wall_is_named() -> None:
    walls = [
        *(check_process_wall(has_namespace=has_it) for has_it in (True, False)),
        *(check_limit_wall(has_group=has_it) for has_it in (True, False)),
    ]

    assert [wall.level for wall in walls] == [Level.OK, Level.NOTE] * 2
    words = ("PID namespace", "reads nothing about others", "control group bounds", "are measured")
    for wall, word in zip(walls, words, strict=True):
        assert word in wall.message


def test_the_confinement_of_this_machine_is_checked_if_commands_are_confined(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = ("confinement", "processes", "limits")

    def messages() -> list[str]:
        report = json.loads("\n".join(call("doctor", "--offline", "--json").out))
        return [one["message"] for one in report["findings"] if one["check"] in checks]

    expected = [
        *check_confinement(confinement_missing(), confinement_gaps()),
        check_process_wall(has_namespace=gives_process_namespace()),
        check_limit_wall(has_group=bool(control_groups())),
    ]
    assert messages() == [one.message for one in expected]
    monkeypatch.setenv("BACKBURNER_COMMANDS", "off")
    assert messages() == []


def test_free_memory_is_the_minimum_of_machine_and_container(tmp_path: Path) -> None:
    memory, group = tmp_path / "meminfo", tmp_path / "group"
    assert free_memory(memory, group) is None

    memory.write_text("MemTotal: 9 kB\nMemAvailable:   4 kB\n")
    assert free_memory(memory, group) == 4096

    group.mkdir()
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("1024\n")
    assert free_memory(memory, group) == 4096

    (group / "memory.max").write_text("3072\n")
    assert free_memory(memory, group) == 2048


@requirement("B-signed-in")
def test_the_sign_ins_that_agents_could_use_are_listed(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = SignedInOwner(tmp_path)
    owner.write(".config/gh/hosts.yml", "github.com:\n    user: octocat\n")
    monkeypatch.setenv("HOME", str(owner.home))
    monkeypatch.setenv("PATH", str(owner.programs))

    ended = call("doctor", "--offline")

    lines = {line.split()[2]: line for line in ended.out if line[5:].startswith("sign-in")}
    assert "developer, context kind-one. With one account, agents may" in lines["kubectl:"]
    assert "in the keyring of the desktop" in lines["gh:"]
    assert "aws is not installed." in lines["aws:"]
    assert lines["kubectl:"].startswith("[ok]")
    assert ended.code == 0
    monkeypatch.setenv("BACKBURNER_COMMANDS", "off")
    assert not [line for line in call("doctor", "--offline").out if "sign-in" in line]
