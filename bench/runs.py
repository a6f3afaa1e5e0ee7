"""Whole runs, beside other queues: rates, delays, claims, chats, starts, and what they take.

Every cell is measured once a round, in turns. The other queues do less in a job than a run does.
`--only NAME,...` measures a part, `--rounds NUMBER` sets how often, and `--quick` takes fewer and
smaller rounds. `--json FILE` writes the rows, and `--against FILE` compares with such a file.
"""

import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from math import ceil

from _cells import Cell, take_turns
from _chat_cells import chat_cells
from _delay_cells import delay_cells
from _grounds import Grounds, Scale, open_grounds
from _peers import peer_cells
from _report import option, report
from _run_cells import claim_cells, run_cells
from _start_cells import claude_cells, start_cells

from backburner import log

#: Samples of a delay in all rounds.
DELAYS, QUICK_DELAYS = 500, 40
SECTIONS: dict[str, Callable[[Grounds, ExitStack], list[Cell]]] = {
    "runs": run_cells,
    "peers": peer_cells,
    "delays": delay_cells,
    "claims": claim_cells,
    "chat": chat_cells,
    "claude": claude_cells,
    "start": start_cells,
}
NOTE = (
    "Read ratios rather than rates: machines differ, and rounds do. `from` and `to` are the lowest"
    " and highest round.\nThe other queues do less in a job: no message, notice, outcome or events;"
    " the bare worker writes a run and a message."
)


def main() -> None:
    scale, chosen = choose_scale(), choose_sections()
    # What was started is ended then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    log.set_up(level="warning", style="text", secrets=())
    with open_grounds(scale) as ground, ExitStack() as opened:
        cells = [cell for name in chosen for cell in SECTIONS[name](ground, opened)]
        take_turns(cells, rounds=scale.rounds)
    if option("--json") != "":
        print(NOTE, end="\n\n")
    named = {cell.name: cell for cell in cells}
    rows = [row for cell in cells for row in cell.rows(named)]
    report("runs", rows, rounds=scale.rounds)


def choose_scale() -> Scale:
    is_quick = "--quick" in sys.argv[1:]
    asked = option("--rounds")
    if asked is not None and not (asked.isdecimal() and int(asked)):
        sys.exit("--rounds needs a number, for example --rounds 3.")
    rounds = int(asked) if asked else 2 if is_quick else 5
    samples = ceil((QUICK_DELAYS if is_quick else DELAYS) / rounds)
    if is_quick:
        return Scale(rounds, 200, 500, samples, claims=20, messages=20, is_quick=True)
    return Scale(rounds, 1_000, 5_000, samples, claims=100, messages=100, is_quick=False)


def choose_sections() -> list[str]:
    asked = option("--only")
    if asked is None:
        return list(SECTIONS)
    names = asked.split(",")
    if unknown := [name for name in names if name not in SECTIONS]:
        sys.exit(f"--only knows {', '.join(SECTIONS)}, and not {', '.join(unknown) or 'nothing'}.")
    return names


if __name__ == "__main__":
    main()
