"""What `backburner doctor` looks at on the machine: Python, folders, files, memory, the port."""

import http.client
import json
import os
import platform
import stat
from pathlib import Path

from backburner.app.folder import check_writable
from backburner.app.machines import ONE_CLAUDE
from backburner.cli.findings import Finding, Mark
from backburner.core.errors import MachineFailed
from backburner.settings import MODELS_NAME, Settings, find_file


def look_at_python() -> Finding:
    return Finding("Python", f"{platform.python_version()} on {platform.system()}.")


def look_at_data(folder: Path) -> Finding:
    if not folder.exists():
        above = next(one for one in folder.parents if one.exists())
        if not os.access(above, os.W_OK | os.X_OK):
            words = f"{folder} cannot be made: {above} may not be written."
            return Finding("data folder", words, Mark.BROKEN, "Choose another with --data.")
        return Finding("data folder", f"{folder} is not there yet; the first start makes it.")
    try:
        check_writable(folder)
    except MachineFailed as error:
        return Finding("data folder", error.message, Mark.BROKEN, error.hint)
    return Finding("data folder", f"{folder} can be written.")


def look_at_files(settings: Settings) -> list[Finding]:
    options = {"config": settings.config, "data": settings.data}
    path, _ = find_file(options)
    used = f"{path}." if path.exists() else f"none; {path} would be read."
    found = [Finding("settings file", used)]
    models = settings.data / MODELS_NAME
    return [*found, _look_at_models(models)] if models.exists() else found


def _look_at_models(path: Path) -> Finding:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        words = f"{path} holds secrets and can be read by others."
        return Finding("models file", words, Mark.BROKEN, f"Run: chmod 600 {path}")
    return Finding("models file", f"{path}, which only its owner can read.")


def look_at_memory(settings: Settings, free: int | None) -> Finding:
    """Say how many agents of Claude Code fit; what others take is not counted."""
    if free is None:
        return Finding("memory", "how much is free cannot be told here.", Mark.NOTE)
    fit = free // ONE_CLAUDE
    words = f"{free // 2**20} MB free: room for {fit} runs with Claude at a time."
    wanted = min(
        settings.concurrency,
        sum(one.seats or 0 for one in settings.profiles.values() if one.engine == "claude"),
    )
    if fit >= wanted:
        return Finding("memory", words)
    hint = f"Set concurrency to {max(fit, 1)}; {wanted} are allowed now."
    return Finding("memory", words, Mark.NOTE, hint)


def look_at_port(settings: Settings) -> Finding | None:
    """See whether a Backburner runs already, or something else is where it would listen."""
    host, port = settings.host, settings.port
    if port == 0:
        return None
    where = f"{host}:{port}"
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", "/health")
        health = json.loads(connection.getresponse().read(10_000))
        return Finding("server", f"Backburner {health['version']} runs at {where}.")
    except ConnectionRefusedError:
        return Finding("server", f"none runs; {where} is free.")
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        words = f"{where} is used by something else."
        return Finding("server", words, Mark.BROKEN, "Stop it, or set another port.")
    finally:
        connection.close()
