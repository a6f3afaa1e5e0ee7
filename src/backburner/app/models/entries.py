"""Entries of operators as tables of the models file."""

from collections.abc import Mapping
from typing import Any

from backburner.core.errors import BadRequest, BadSetting
from backburner.ports import ModelEntry, ModelKind
from backburner.settings import CLAUDE_ADDRESS, CLAUDE_MODEL, Profile, read_profile

LOCAL_ADDRESS = "http://127.0.0.1:11434/v1"
#: The names of profiles that `setup` stores.
PROFILE_NAMES = {
    ModelKind.CLAUDE_KEY: "claude",
    ModelKind.CLAUDE_TOKEN: "claude",
    ModelKind.OPENAI: "local",
    ModelKind.DEMO: "demo",
}
ENGINES = {
    ModelKind.CLAUDE_KEY: "claude",
    ModelKind.CLAUDE_TOKEN: "claude",
    ModelKind.OPENAI: "openai",
    ModelKind.DEMO: "demo",
}
_SECRETS = ("key", "key_file", "token", "token_file")
#: Of a profile that is changed: what an entry does not name.
_KEPT = ("seats",)
_KEPT_WITH_MODEL = ("price", "images")


def kind_of(profile: Profile) -> ModelKind:
    if profile.engine == "claude":
        return ModelKind.CLAUDE_TOKEN if profile.token else ModelKind.CLAUDE_KEY
    return ModelKind(profile.engine)


def to_table(entry: ModelEntry) -> dict[str, Any]:
    """Write an entry as a table. Defaults are left out, so that an update can change them."""
    if entry.kind is ModelKind.DEMO:
        return {"engine": "demo"}
    is_claude = ENGINES[entry.kind] == "claude"
    table: dict[str, Any] = {"engine": ENGINES[entry.kind]}
    address, model = entry.address.strip().rstrip("/"), entry.model.strip()
    if not is_claude or (address and address != CLAUDE_ADDRESS):
        table["address"] = address
    if not is_claude or (model and model != CLAUDE_MODEL):
        table["model"] = model
    if entry.secret:
        table["token" if entry.kind is ModelKind.CLAUDE_TOKEN else "key"] = entry.secret
    return table


def merge(name: str, entry: ModelEntry, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Write an entry as the table of a profile, in place of the one `before`.

    The key of that one is kept if the entry has none and its kind and address are the same.
    """
    table = to_table(entry)
    if before is not None:
        former, now = read(name, before), read(name, _with_some_key(table))
        if former.engine == now.engine:
            is_same = (kind_of(former), former.address) == (entry.kind, now.address)
            secrets = _SECRETS if entry.secret is None and is_same else ()
            settings = (*_KEPT, *_KEPT_WITH_MODEL) if former.model == now.model else _KEPT
            table |= {key: before[key] for key in (*secrets, *settings) if key in before}
    if _with_some_key(table) != table:
        raise BadRequest(
            f"A {'token' if entry.kind is ModelKind.CLAUDE_TOKEN else 'key'} is needed.",
            hint="Enter it. A stored one is only sent to the address that it was stored for.",
        )
    return table


def _with_some_key(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a table that is valid apart from its key, which models of Claude need."""
    has_key = table["engine"] != "claude" or any(key in table for key in _SECRETS)
    return table if has_key else {**table, "key": "none"}


def table_of(profile: Profile) -> dict[str, Any]:
    """Write a profile that is in use as a table, to test it with changes."""
    if profile.engine == "demo":
        return {"engine": "demo"}
    secrets = {"key": profile.key, "token": profile.token}
    return {
        "engine": profile.engine,
        "model": profile.model,
        "address": profile.address,
        **{name: secret.get_secret_value() for name, secret in secrets.items() if secret},
    }


def read(name: str, table: Mapping[str, Any]) -> Profile:
    """Validate a table; errors quote nothing that may be secret."""
    try:
        return read_profile(name, table)
    except ValueError as error:
        raise BadSetting(f"The profile {error}.") from None
