"""Doctor's checks of this machine: Python, folders, files, memory, the server."""

import http.client
import json
import os
import platform
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from backburner.app import vault
from backburner.app.folder import check_writable
from backburner.app.folders import check_given_folders
from backburner.app.machines import CLAUDE_MEMORY_BYTES
from backburner.cli.client import Server
from backburner.cli.findings import Finding, Level
from backburner.cli.server_options import read_client_file
from backburner.core.errors import BackburnerError, MachineFailed, NotAllowed, StoreFailed
from backburner.data_folder import CLIENT_FILE, find_settings_file
from backburner.ports import SignInState, VaultStatus
from backburner.settings import MODELS_FILE, Settings

CHECK_TIMEOUT_SECONDS = 2.0


def check_python() -> Finding:
    return Finding("Python", f"{platform.python_version()} on {platform.system()}.")


def check_data_folder(folder: Path) -> Finding:
    if not folder.exists():
        parent = next(path for path in folder.parents if path.exists())
        if not os.access(parent, os.W_OK | os.X_OK):
            message = f"Cannot create {folder}: {parent} is not writable."
            return Finding("data folder", message, Level.PROBLEM, "Choose another with --data.")
        return Finding("data folder", f"{folder} does not exist yet; the first start creates it.")
    try:
        check_writable(folder)
    except MachineFailed as error:
        return Finding("data folder", error.message, Level.PROBLEM, error.hint)
    return Finding("data folder", f"{folder} is writable.")


def check_files(settings: Settings) -> list[Finding]:
    path, _ = find_settings_file({"config": settings.config, "data": settings.data})
    findings = [_check_settings_file(path, settings)]
    models = settings.data / MODELS_FILE
    return [*findings, _check_models_file(models)] if models.exists() else findings


def _check_settings_file(path: Path, settings: Settings) -> Finding:
    if not path.exists():
        return Finding("settings file", f"none; {path} would be read.")
    text = path.read_text(encoding="utf-8", errors="replace")
    holds_secrets = any(secret and secret in text for secret in settings.secrets())
    if holds_secrets and stat.S_IMODE(path.stat().st_mode) & 0o077:
        message = f"{path} holds secrets but other users can read it."
        return Finding("settings file", message, Level.PROBLEM, f"Run: chmod 600 {path}")
    return Finding("settings file", f"{path}.")


def _check_models_file(path: Path) -> Finding:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        message = f"{path} holds secrets but other users can read it."
        return Finding("models file", message, Level.PROBLEM, f"Run: chmod 600 {path}")
    return Finding("models file", f"{path}, readable by its owner only.")


def check_folders(settings: Settings) -> Iterator[Finding]:
    """Report the folders that the settings give to each account, or why they may not."""
    if not settings.folders:
        return
    try:
        check_given_folders(settings)
    except BackburnerError as error:
        yield Finding("folders", error.message, Level.PROBLEM, error.hint)
    else:
        yield Finding("folders", f"each account has {', '.join(settings.folders)}.")


def check_sign_ins(states: Iterable[SignInState]) -> Iterator[Finding]:
    """Report which programs agents could use with a sign-in of the user, and which not."""
    for state in states:
        message = f"{state.program}: {state.missing or state.account}"
        if state.missing:
            yield Finding("sign-in", message, Level.NOTE, state.hint)
        else:
            yield Finding("sign-in", f"{message}. With one account, agents may ask to use it.")


def check_memory(settings: Settings, free: int | None) -> Finding:
    """Compare the runs with Claude Code that fit into memory with those that settings allow."""
    if free is None:
        return Finding("memory", "This system does not report free memory.", Level.NOTE)
    fit = free // CLAUDE_MEMORY_BYTES
    message = f"{free // 2**20} MB free, enough for {fit} concurrent runs with Claude."
    seats = [profile.seats for profile in settings.profiles.values() if profile.engine == "claude"]
    allowed = min(settings.concurrency, sum(count or 0 for count in seats))
    if fit >= allowed:
        return Finding("memory", message)
    hint = f"Set concurrency to {max(fit, 1)}; {allowed} are allowed now."
    return Finding("memory", message, Level.NOTE, hint)


def check_vault(settings: Settings) -> Iterator[Finding]:
    """Report whether the secrets in the database can be opened."""
    try:
        status = vault.read_status(settings) or _ask_about_vault(settings)
    except StoreFailed:
        # The check of the database says so.
        return
    except BackburnerError as error:
        yield Finding("vault", error.message, Level.PROBLEM, error.hint)
        return
    if status is None or not (status.current or status.problem):
        return
    if status.problem:
        yield Finding("vault", status.problem, Level.PROBLEM, status.hint)
    elif status.locked:
        hint = f"Looked in {status.source}."
        for line in vault.describe_locked(status.locked):
            yield Finding("vault", line, Level.PROBLEM, hint)
    else:
        message = f"secrets are sealed with the master key {status.current} in {status.source}."
        yield Finding("vault", message)


def _ask_about_vault(settings: Settings) -> VaultStatus | None:
    """Ask the server that has the database open, if this user may."""
    with suppress(BackburnerError, KeyError, TypeError):
        stored = read_client_file(str(settings.data))
        server = Server(str(stored["address"]), str(stored["token"]), CHECK_TIMEOUT_SECONDS)
        return VaultStatus(**server.get("/api/vault"))
    return None


def check_server(settings: Settings) -> Finding | None:
    """Report whether a server runs with this data folder, else who uses the configured port."""
    try:
        stored = read_client_file(str(settings.data))
        server = Server(str(stored["address"]), str(stored["token"]), CHECK_TIMEOUT_SECONDS)
        version = server.get("/health")["version"]
    except (BackburnerError, KeyError, TypeError):
        return _check_port(settings)
    running = f"Backburner {version} is running at {server.address} with this data folder"
    try:
        # Another server that listens there by now does not know the token.
        server.get("/api/me")
        server.get("/ready")
    except NotAllowed:
        return _check_port(settings)
    except BackburnerError:
        hint = f"{server.address}/ready says what is wrong, and so does its log."
        return Finding("server", f"{running}, but is not ready.", Level.PROBLEM, hint)
    message = f"{running}."
    started_at = (settings.data / CLIENT_FILE).stat().st_mtime
    path, _ = find_settings_file({"config": settings.config, "data": settings.data})
    if path.exists() and path.stat().st_mtime > started_at:
        message = f"{message} {path.name} was changed after it started."
        return Finding("server", message, Level.NOTE, "Restart it to use the new settings.")
    if not _has_models(server, settings):
        message = f"{message} It has other models than the settings."
        return Finding("server", message, Level.NOTE, "Run `backburner models reload`.")
    return Finding("server", message)


def _has_models(server: Server, settings: Settings) -> bool:
    """Compare the models of a server, if it tells them, with the settings, by name and use."""
    chat, background = settings.routes.chat, settings.routes.background
    wanted = {name: (name == chat, name == (background or chat)) for name in settings.profiles}
    try:
        used = {
            model["profile"]: (model["chats"], model["background"])
            for model in server.get("/api/models")["items"]
        }
    except (BackburnerError, KeyError, TypeError):
        return True
    return used == wanted


def _check_port(settings: Settings) -> Finding | None:
    host, port = settings.host, settings.port
    if port == 0:
        return None
    address = f"http://{host}:{port}"
    connection = http.client.HTTPConnection(host, port, timeout=CHECK_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/health")
        health = json.loads(connection.getresponse().read(10_000))
    except ConnectionRefusedError:
        return Finding("server", f"not running; {host}:{port} is free.")
    except (OSError, http.client.HTTPException, ValueError):
        health = None
    finally:
        connection.close()
    if not isinstance(health, dict) or "version" not in health:
        message = f"Another program uses {host}:{port}."
        return Finding("server", message, Level.PROBLEM, "Stop it, or set another port.")
    found = f"Backburner {health['version']} is running at {address}"
    if not (settings.data / CLIENT_FILE).exists():
        message = f"{found}; whether it uses this data folder is not known."
        return Finding("server", message)
    hint = "To start one for this folder too, set another port."
    return Finding("server", f"{found}, with another data folder.", Level.NOTE, hint)
