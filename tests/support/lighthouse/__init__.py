"""Lighthouse, in a browser that is signed in already."""

import asyncio
import json
from pathlib import Path

from support import npm_packages

HERE = Path(__file__).parent
CATEGORIES = ("performance", "accessibility", "best-practices")
#: What it found, of 100, and what it had to say where that is less.
Scores = dict[str, tuple[int, list[str]]]


async def score(address: str, port: int, *, phone: bool) -> Scores:
    """Look at a page through the debugging port of a browser, whose storage is kept."""
    packages = npm_packages.install(HERE, "lighthouse")
    process = await asyncio.create_subprocess_exec(
        str(npm_packages.find_program("node")),
        str(packages / "lighthouse" / "cli" / "index.js"),
        *(address, f"--port={port}", "--disable-storage-reset", "--output=json", "--quiet"),
        # The stream of changes never ends, so a page is never quiet.
        "--max-wait-for-load=8000",
        f"--only-categories={','.join(CATEGORIES)}",
        *(() if phone else ("--preset=desktop",)),
        env={"LANG": "en_US.UTF-8", "CI": "1", "HOME": str(packages.parent)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    report = json.loads(out)
    assert report["finalDisplayedUrl"] == address, report["finalDisplayedUrl"]
    audits = report["audits"]
    return {
        name: (
            round(100 * (found["score"] or 0)),
            [
                f"{audits[one['id']]['title']} {audits[one['id']].get('displayValue', '')}".strip()
                for one in found["auditRefs"]
                if one["weight"]
                and (audits[one["id"]]["score"] or 0) < 1
                and audits[one["id"]]["scoreDisplayMode"] not in ("notApplicable", "manual")
            ],
        )
        for name, found in report["categories"].items()
    }
