"""The models that operators store through the API, in the models file of the data folder.

A running server uses them at once. If it cannot, the file is put back as it was.
"""

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backburner import log
from backburner.app.model_reload import ModelReloader
from backburner.app.models import entries
from backburner.app.models.trial import list_offered, run_test
from backburner.core.errors import BackburnerError, BadRequest, BadSetting, Conflict, NotFound
from backburner.engine.installed import need_library
from backburner.ports import ModelEntry, ModelKind, ModelList, ModelProfile, ModelRole, ModelTest
from backburner.private_file import write_private_file
from backburner.settings import (
    BACKGROUND_ROLE,
    CHAT_ROLE,
    DEMO,
    MODELS_FILE,
    Overrides,
    Profile,
    Settings,
    find_overrides,
    lock_models_file,
    read_models_file,
    read_profiles,
    write_models_file,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_ROLES = {ModelRole.CHATS: CHAT_ROLE, ModelRole.BACKGROUND: BACKGROUND_ROLE}
_ROLE_WORDS = {ModelRole.CHATS: "chats", ModelRole.BACKGROUND: "background work"}

#: The content of the models file.
Content = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Known:
    """Models in use, those that are stored, and those that other sources set."""

    settings: Settings
    content: Content
    overrides: Overrides

    @property
    def stored(self) -> Mapping[str, Any]:
        profiles: Mapping[str, Any] = self.content.get("profiles", {})
        return profiles


class StoredModels:
    def __init__(self, reloader: ModelReloader) -> None:
        self._reloader = reloader
        self._lock = asyncio.Lock()

    async def list(self) -> ModelList:
        return await asyncio.to_thread(self._list)

    async def test(self, entry: ModelEntry | None, profile: str | None) -> ModelTest:
        return await run_test(await asyncio.to_thread(self._find, entry, profile))

    async def offered(self, entry: ModelEntry | None, profile: str | None) -> Sequence[str]:
        if entry is not None:
            # Any name will do: no model of it is asked.
            entry = replace(entry, model=entry.model or "any")
        return await list_offered(await asyncio.to_thread(self._find, entry, profile))

    async def save(self, name: str, entry: ModelEntry, roles: Sequence[ModelRole]) -> ModelProfile:
        if not _NAME.fullmatch(name):
            raise BadRequest(
                f"{name[:100]!r} cannot be the name of a profile.",
                hint="Use up to 40 letters, digits, dots, dashes and underscores.",
            )
        if name == DEMO or entry.kind is ModelKind.DEMO:
            raise BadRequest(
                "The demo is built in.", hint="Choose it as the model of chats instead."
            )

        def change(known: _Known) -> Content:
            _check_own(known, name)
            table = entries.merge(name, entry, known.stored.get(name))
            _check_usable(entries.read(name, table))
            profiles = {**known.stored, name: table}
            return _with_roles(known, profiles, dict.fromkeys(roles, name))

        await self._change(change)
        return next(one for one in (await self.list()).profiles if one.name == name)

    async def choose(self, chosen: Mapping[ModelRole, str | None]) -> None:
        def change(known: _Known) -> Content:
            for name in chosen.values():
                if name is not None and name not in known.settings.profiles:
                    names = ", ".join(known.settings.profiles)
                    raise BadRequest(
                        f"There is no model {name[:100]!r}.", hint=f"There are: {names}."
                    )
            if chosen.get(ModelRole.CHATS, "") is None:
                raise BadRequest("Chats need a model.", hint=f"Choose one, such as {DEMO}.")
            return _with_roles(known, known.stored, chosen)

        await self._change(change)

    async def remove(self, name: str) -> None:
        def change(known: _Known) -> Content:
            if name not in known.settings.profiles and name not in known.stored:
                raise NotFound(f"There is no model {name[:100]!r}.")
            if name == DEMO:
                raise Conflict("The demo is built in.")
            _check_own(known, name)
            routes = known.settings.routes
            if routes.chat == name:
                raise Conflict("Chats use this model.", hint="Choose another one for chats first.")
            profiles = {key: table for key, table in known.stored.items() if key != name}
            freed: dict[ModelRole, str | None] = (
                {ModelRole.BACKGROUND: None} if routes.background == name else {}
            )
            return _with_roles(known, profiles, freed)

        await self._change(change)

    def _list(self) -> ModelList:
        settings = self._reloader.settings
        routes, obstacle = settings.routes, _find_obstacle(settings.data)
        known = None
        try:
            known = self._read()
        except BackburnerError as error:
            obstacle = obstacle or str(error)
        profiles = [
            ModelProfile(
                name=profile.name,
                kind=entries.kind_of(profile),
                model=profile.model,
                address=profile.address,
                has_key=profile.secret is not None,
                seats=profile.seats,
                can_change=known is not None
                and not obstacle
                and profile.name in known.stored
                and profile.name not in known.overrides.profiles,
            )
            for profile in settings.profiles.values()
        ]
        obstacles = {
            role: obstacle or (_find_role_obstacle(known, role) if known else "")
            for role in ModelRole
        }
        return ModelList(
            profiles=profiles,
            chat=routes.chat,
            background=routes.background,
            obstacle=obstacle,
            chat_obstacle=obstacles[ModelRole.CHATS],
            background_obstacle=obstacles[ModelRole.BACKGROUND],
        )

    def _find(self, entry: ModelEntry | None, name: str | None) -> Profile:
        """Return the profile to ask. Its stored key is for its own address and kind alone."""
        if entry is not None and entry.kind is ModelKind.DEMO:
            return self._reloader.settings.profiles[DEMO]
        existing = None if name is None else self._reloader.settings.profiles.get(name)
        if name is not None and existing is None:
            raise NotFound(f"There is no model {name[:100]!r}.")
        if entry is None:
            if existing is None:
                raise BadRequest("There is nothing to test.", hint="Send `kind` or `profile`.")
            return existing
        if entry.secret:
            # Before anything can fail with it in its message.
            log.add_secrets([entry.secret])
        before = None if existing is None else entries.table_of(existing)
        table = entries.merge("tested", entry, before)
        return entries.read("tested", table)

    def _read(self) -> _Known:
        settings = self._reloader.settings
        content = read_models_file(settings.data)
        try:
            read_profiles(content.get("profiles", {}))
        except ValueError as error:
            raise BadSetting(
                f"{settings.data / MODELS_FILE} is invalid: {error}".rstrip(": ") + ".",
                hint="Run `backburner setup`, which replaces it.",
            ) from None
        return _Known(settings, content, find_overrides(settings))

    async def _change(self, change: Callable[[_Known], Content]) -> None:
        """Change the models file, and use it; an error puts it back."""
        async with self._lock:
            before = await asyncio.to_thread(self._write, change)
            try:
                await self._reloader.reload()
            except Conflict:
                # In any other case the new models are in use.
                await asyncio.to_thread(self._put_back, before)
                raise

    def _write(self, change: Callable[[_Known], Content]) -> bytes | None:
        """Return what was in the file; None: there was none."""
        folder = self._reloader.settings.data
        if obstacle := _find_obstacle(folder):
            raise Conflict(obstacle, hint="Change the models where they are set.")
        with lock_models_file(folder):
            try:
                known = self._read()
            except BadSetting as error:
                raise Conflict(error.message, hint=error.hint) from error
            content = change(known)
            path = folder / MODELS_FILE
            before = path.read_bytes() if path.exists() else None
            write_models_file(folder, content)
            return before

    def _put_back(self, before: bytes | None) -> None:
        path = self._reloader.settings.data / MODELS_FILE
        if before is None:
            path.unlink(missing_ok=True)
        else:
            write_private_file(path, [before], overwrite=True)


def _find_obstacle(folder: Path) -> str:
    """Say why the models file cannot be written; empty: it can."""
    if os.access(folder, os.W_OK | os.X_OK):
        return ""
    return f"The models of this server cannot be changed here: {folder} is not writable."


def _find_role_obstacle(known: _Known, role: ModelRole) -> str:
    source = known.overrides.roles.get(_ROLES[role])
    return f"The model of {_ROLE_WORDS[role]} is set by {source}." if source else ""


def _check_own(known: _Known, name: str) -> None:
    if (source := known.overrides.profiles.get(name)) is not None:
        raise Conflict(f"The model {name} is set by {source}.", hint="Change it there.")


def _check_usable(profile: Profile) -> None:
    try:
        need_library(profile.engine)
    except BackburnerError as error:
        raise Conflict(error.message, hint=error.hint) from error


def _with_roles(
    known: _Known, profiles: Mapping[str, Any], chosen: Mapping[ModelRole, str | None]
) -> Content:
    """Return the new content; roles that are not chosen stay as they are in use."""
    content: Content = {key: known.content[key] for key in known.content if key != "profiles"}
    if CHAT_ROLE not in known.overrides.roles:
        # The first profile would be the default.
        content.setdefault(CHAT_ROLE, known.settings.routes.chat)
    for role, name in chosen.items():
        if obstacle := _find_role_obstacle(known, role):
            raise Conflict(obstacle, hint="Change it there.")
        if name is None:
            content.pop(_ROLES[role], None)
        else:
            content[_ROLES[role]] = name
    return {**content, "profiles": dict(profiles)}
