"""What a start costs, from a bare Python to the server's first answer, and the server's memory."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from _environments import USER
from _report import interleave, report

ROOT = Path(__file__).parent.parent
BACKBURNER = str(USER.folder / "bin" / "backburner")
ROUNDS = 7


def main() -> None:
    USER.make()
    with tempfile.TemporaryDirectory() as scratch:
        used = Path(scratch) / "used"
        new = (Path(scratch) / str(number) for number in range(ROUNDS))
        measures = {
            "python -c pass": lambda: finished([sys.executable, "-c", "pass"]),
            "backburner --version": lambda: finished([BACKBURNER, "--version"]),
            "backburner up, new data folder": lambda: answered([BACKBURNER], next(new)),
            "backburner up, again": lambda: answered([BACKBURNER], used),
            "dev.py up, again": lambda: answered([sys.executable, str(ROOT / "dev.py")], used),
        }
        seconds = interleave(measures, rounds=ROUNDS)
        memory = idle_memory(used)
    bare = seconds["python -c pass"]
    report(
        "start",
        [
            {"what": name, "ms": value * 1000, "x bare python": value / bare}
            for name, value in seconds.items()
        ],
        rounds=ROUNDS,
        idle_server_resident_mb=memory,
    )


def finished(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def answered(program: list[str], data: Path) -> float:
    start = time.perf_counter()
    with server(program, data):
        return time.perf_counter() - start


def idle_memory(data: Path) -> float:
    """Give the megabytes a server holds that has answered one request."""
    with server([BACKBURNER], data) as (process, _):
        shown = ["ps", "-o", "rss=", "-p", str(process.pid)]
        return int(subprocess.run(shown, check=True, capture_output=True).stdout) / 1024


@contextmanager
def server(program: list[str], data: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Start one and wait until it has answered /health; give its process and its address."""
    command = [*program, "up", "--port", "0", "--data", str(data)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            banner = next(iter(process.stdout or ()), "")
            if not banner:
                sys.exit(f"The server did not start. To see why: {' '.join(command)}")
            address = banner.split()[-1]
            with urlopen(f"{address}/health"):  # noqa: S310 (an address we were just told)
                yield process, address
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
