"""Clients that the operator has registered with authorization servers, and their validation."""

import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from backburner.core.connections.oauth_client import ConfiguredClient, OAuthClient
from backburner.settings.profiles import clean_secret
from backburner.settings.values import Takes

_KEYS = ("id", "secret", "servers")
_HOST = re.compile(r"[a-z0-9.-]+(:[0-9]{1,5})?")


def read_clients(tables: object) -> dict[str, ConfiguredClient]:
    if not isinstance(tables, Mapping):
        raise ValueError  # noqa: TRY004 (only this becomes a line about the setting)
    return {str(issuer): _read_client(str(issuer), table) for issuer, table in tables.items()}


def _read_client(issuer: str, table: object) -> ConfiguredClient:
    """Read a client; errors quote no secret."""
    if isinstance(table, ConfiguredClient):
        return table
    if urlsplit(issuer).scheme not in ("http", "https") or not urlsplit(issuer).hostname:
        raise ValueError(f"{issuer[:100]!r} is not the address of an authorization server")
    if not isinstance(table, Mapping) or "id" not in table:
        example = '{id = "...", servers = ["mcp.example.com"]}'
        raise ValueError(f"{issuer[:100]} is not a table such as {example}")
    for key in table:
        if key not in _KEYS:
            raise ValueError(
                f"{issuer[:100]} has {str(key)[:40]!r}; the keys are id, secret and servers"
            )
    try:
        client_id = clean_secret(str(table["id"]))
        secret = clean_secret(str(table["secret"])) if "secret" in table else ""
    except ValueError:
        raise ValueError(f"{issuer[:100]} has an id or secret that cannot be sent") from None
    servers = table.get("servers")
    if not isinstance(servers, list) or not servers or not all(map(_is_host, servers)):
        raise ValueError(
            f"{issuer[:100]} needs `servers`: the hosts of the MCP servers that the client is for,"
            ' such as ["mcp.example.com"]'
        )
    return ConfiguredClient(OAuthClient(client_id=client_id, secret=secret), frozenset(servers))


def _is_host(value: object) -> bool:
    return isinstance(value, str) and bool(_HOST.fullmatch(value))


OAuthClients = Annotated[
    dict[str, ConfiguredClient],
    BeforeValidator(read_clients),
    Takes("a table of clients by issuer: id, secret, servers"),
]
