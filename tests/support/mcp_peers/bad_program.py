"""An MCP server over stdio that misbehaves in one way; the standard library alone, run by its path.

python -I bad_program.py MODE [WORD]
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
WORD = sys.argv[2] if len(sys.argv) > 2 else ""
MEGABYTE = b"x" * 2**20


def write(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any], result: object) -> None:
    write({"jsonrpc": "2.0", "id": request["id"], "result": result})


def text_of_call(request: dict[str, Any]) -> str:
    """Do what the test asks for, in a call."""
    wanted = request["params"]["arguments"]
    if "path" in wanted:
        try:
            return Path(wanted["path"]).read_text(encoding="utf-8")
        except OSError as error:
            return str(error.strerror)
    if "write" in wanted:
        try:
            Path(wanted["write"]).write_text("written", encoding="utf-8")
        except OSError as error:
            return str(error.strerror)
        return "written"
    if "port" in wanted:
        try:
            socket.create_connection(("127.0.0.1", wanted["port"]), timeout=2).close()
        except OSError as error:
            return error.strerror or type(error).__name__
        return "connected"
    if "environment" in wanted:
        return json.dumps(dict(os.environ))
    return "called"


def behave(request: dict[str, Any]) -> None:
    method = request.get("method")
    if method == "initialize":
        capabilities: dict[str, Any] = {"tools": {}}
        info = {"name": "bad", "version": "1"}
        version = request["params"]["protocolVersion"]
        answer(
            request,
            {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info},
        )
    elif method == "tools/list":
        answer(request, {"tools": [{"name": "do", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        call(request)
    elif "id" in request:
        error = {"code": -32601, "message": "Method not found"}
        write({"jsonrpc": "2.0", "id": request["id"], "error": error})


def call(request: dict[str, Any]) -> None:
    if MODE == "dies in a call":
        os.write(2, b"canary-secret gone\n")
        os.kill(os.getpid(), 9)
    if MODE == "exits in a call":
        sys.exit(3)
    if MODE == "hangs in a call":
        time.sleep(600)
    if MODE == "writes a line without end in a call":
        while True:
            os.write(1, MEGABYTE)
    if MODE == "closes its output in a call":
        os.close(1)
        time.sleep(600)
    content = [{"type": "text", "text": text_of_call(request)}]
    answer(request, {"content": content})


def begin() -> None:
    if MODE == "exits at once":
        os.write(2, b"cannot find the settings\n")
        sys.exit(4)
    if MODE == "never answers":
        time.sleep(600)
    if MODE == "floods":
        while True:
            os.write(1, f"{WORD or 'not MCP'}\n".encode() * 10_000)
    if MODE == "fills stderr":
        for _ in range(20):
            os.write(2, MEGABYTE)
    if MODE == "greets":
        os.write(1, b"Welcome to the server!\n\x1b[31mcolorful\n")
    if MODE == "has children":
        subprocess.Popen(["/bin/sleep", "600", WORD], start_new_session=True)


def main() -> None:
    begin()
    for line in sys.stdin:
        behave(json.loads(line))
    if MODE == "stays":
        time.sleep(600)


main()
