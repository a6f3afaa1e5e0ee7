"""Clients generated from the description of the API: `soak clients`.

Generators from PyPI and npm make a client each, in a folder of their own, and must have nothing to
complain about. The Python client then starts a job and has to return it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path

from support.people.a_token import TOKEN
from support.servers import fuzzing

PYTHON_TOOLS = ("openapi-python-client", "ruff")
NPM_TOOLS = ("openapi-typescript", "typescript")
#: Uses the generated client as anybody would.
USE = """
import sys
from backburner_client import AuthenticatedClient
from backburner_client.api.conversations import create_conversation
from backburner_client.api.jobs import get_job, start_job
from backburner_client.models import Job, NewConversation, NewJob

with AuthenticatedClient(sys.argv[1], sys.argv[2]) as client:
    chat = create_conversation.sync(client=client, body=NewConversation(title="Generated"))
    body = NewJob(conversation=chat.id, description="Count", prompt="Count the files.")
    job = start_job.sync(client=client, body=body)
    assert isinstance(job, Job), job
    assert get_job.sync(job.id, client=client).description == "Count"
"""


def main() -> int:
    argparse.ArgumentParser(prog="soak clients").parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "data").mkdir()
        with fuzzing.running(folder / "data") as address:
            document = folder / "openapi.json"
            with urllib.request.urlopen(f"{address}/api/openapi.json") as answer:  # noqa: S310
                document.write_text(json.dumps(json.load(answer)))
            violations = [*make_python(folder, document, address), *make_typescript(folder)]
    for violation in violations:
        print(violation, end="\n\n")
    print(f"2 clients, {len(violations)} violations")
    return 1 if violations else 0


def make_python(folder: Path, document: Path, address: str) -> list[str]:
    tools, client = folder / "python", folder / "client"
    venv.create(tools, with_pip=True)
    run(folder, tools / "bin" / "pip", "install", "--quiet", *PYTHON_TOOLS)
    generator = tools / "bin" / "openapi-python-client"
    options = ("--path", document, "--output-path", client, "--meta", "none", "--fail-on-warning")
    package = client.with_name("backburner_client")
    generated = run(folder, generator, "generate", *options, path=tools / "bin")
    if generated:
        return [generated]
    client.rename(package)
    return list(filter(None, [run(folder, tools / "bin" / "python", "-c", USE, address, TOKEN)]))


def make_typescript(folder: Path) -> list[str]:
    run(folder, "npm", "install", "--silent", "--no-audit", "--no-fund", *NPM_TOOLS)
    tools = folder / "node_modules" / ".bin"
    generated = run(folder, tools / "openapi-typescript", "openapi.json", "-o", "api.ts")
    checked = run(folder, tools / "tsc", "--noEmit", "--strict", "api.ts")
    return list(filter(None, [generated, checked]))


def run(folder: Path, *command: str | Path, path: Path | None = None) -> str:
    """Run a program; return its output if it failed or warned, else nothing."""
    searched = os.pathsep.join(filter(None, [str(path or ""), os.environ.get("PATH", "")]))
    env = {**os.environ, "PATH": searched, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=env,
        text=True,
        capture_output=True,
        check=False,
    )
    output = f"{done.stdout}{done.stderr}"
    failed = done.returncode != 0 or "warning" in output.lower()
    return f"{Path(str(command[0])).name}: {output[-2_000:].strip()}" if failed else ""


if __name__ == "__main__":
    sys.exit(main())
