"""A PostgreSQL server whose clock runs a day ahead and is corrected: `soak clock [SECONDS]`.

Needs libfaketime on the machine, on Debian: apt-get install faketime. The worker is killed
and replaced while the clock is ahead. Recurring work has to go on, and the turn of the killed one
to be freed.
"""

import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from support.doubles.engine import Call, End
from support.faults.outside import Outside
from support.faults.soak import migrate, report
from support.programs.programs import starter
from support.programs.workers import Workers
from support.servers.postgres_server import postgres_server

from backburner.core.conversation import Conversation
from backburner.core.schedule import Interval

SECONDS = 8.0
EVERY = timedelta(seconds=2)
#: How long after the clock is right work may take to go on: a look every second, and a period.
BOUND = 10.0


def main(arguments: list[str]) -> int:
    seconds = float(arguments[0]) if arguments else SECONDS
    library = next(Path("/usr/lib").glob("**/faketime/libfaketime.so.1"), None)
    if library is None:
        print("Install libfaketime first, on Debian: apt-get install faketime")
        return 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        offset = Path(folder, "offset")
        offset.write_text("+0")
        env = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(offset),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        with postgres_server(env=env) as url, starter() as start:
            migrate(url)
            workers = Workers(start, Path(folder), url)
            with Outside(url) as outside:
                broken = jump(outside, workers, offset, seconds)
            workers.end()
    return report(f"a day ahead for {2 * seconds:.0f} s", broken, began=began)


def jump(outside: Outside, workers: Workers, offset: Path, seconds: float) -> list[str]:
    workers.start()
    anchor = outside.database.run(lambda tx: tx.now)
    done = End({"complete": True, "message": "Done."})
    work = outside.task(done, schedule=Interval(EVERY, anchor=anchor))
    time.sleep(seconds)
    print(f"{runs(outside, work)} runs in {seconds:.0f} s")
    offset.write_text("+1d")
    time.sleep(seconds)
    print(f"{runs(outside, work)} runs after {seconds:.0f} s more, a day ahead")
    long = outside.task(Call("look", {"seconds": 600.0}), done)
    while outside.holder(long) is None:
        time.sleep(0.05)
    # Whoever has it.
    workers.end()
    workers.start()
    offset.write_text("+0")
    right_at, before = time.monotonic(), runs(outside, work)
    broken = []
    while runs(outside, work) == before and time.monotonic() < right_at + BOUND:
        time.sleep(0.05)
    if runs(outside, work) == before:
        broken.append(f"Recurring work did not go on within {BOUND:.0f} s.")
    print(f"The next run began {time.monotonic() - right_at:.1f} s after the clock was corrected.")
    crashed = "SELECT 1 FROM runs WHERE conversation_id = :id AND failure_kind = 'crashed'"
    while not (freed := outside.rows(crashed, id=long.id)) and time.monotonic() < right_at + BOUND:
        time.sleep(0.05)
    if not freed:
        broken.append(f"The turn of a killed worker was not freed within {BOUND:.0f} s.")
    print(f"The turn of the killed worker was free {time.monotonic() - right_at:.1f} s after it.")
    outside.cancel(long)
    outside.cancel(work)
    return broken


def runs(outside: Outside, work: Conversation) -> int:
    query = "SELECT count(*) FROM runs WHERE conversation_id = :id AND status = 'success'"
    return int(outside.rows(query, id=work.id)[0][0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
