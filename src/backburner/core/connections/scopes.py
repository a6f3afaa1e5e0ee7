"""Scopes of OAuth: those that servers name, and those that they want besides a sign-in's own.

A server that wants more gets one sign-in that asks for them. What that did not give is refused from
then on, as any other call that the server forbids: asking again would end the same way.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from backburner.core.connections.connection import Connection, ConnectionState

MAX_SCOPES, MAX_SCOPE_CHARS = 100, 200
#: In place of scopes that a server wants and does not name. No scope can be written like this.
UNNAMED = '"'
_SCOPE_CHARS = frozenset(map(chr, range(0x21, 0x7F))) - frozenset('"\\')
#: Of those that people are shown in a sentence.
_MAX_SHOWN, _MAX_SHOWN_CHARS = 5, 80


def read_scopes(texts: Sequence[str]) -> tuple[str, ...]:
    """Read the scopes that a server names; without those that no scope can be."""
    usable = [text for text in texts if 0 < len(text) <= MAX_SCOPE_CHARS]
    return tuple(text for text in usable if _SCOPE_CHARS.issuperset(text))[:MAX_SCOPES]


def name_scopes(scopes: Iterable[str]) -> str:
    """Name scopes in a sentence; empty: their server does not."""
    named = select_named(scopes)
    shown = [
        one if len(one) <= _MAX_SHOWN_CHARS else f"{one[:_MAX_SHOWN_CHARS]}…"
        for one in named[:_MAX_SHOWN]
    ]
    more = len(named) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def select_named(scopes: Iterable[str]) -> tuple[str, ...]:
    return tuple(one for one in scopes if one != UNNAMED)


def scopes_to_ask_for(connection: Connection, more: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what the next sign-in asks for besides the scopes that the server names then."""
    if not (connection.wanted_scopes or more):
        return ()
    return _join(connection.scopes, select_named(connection.wanted_scopes), more)


def sign_out(connection: Connection, wanted: Sequence[str] = ()) -> Connection | None:
    """Return a connection that its owner has to sign in to again; None: that would not help.

    `wanted` are the scopes for which its server refuses the sign-in, if that is the reason.
    """
    missing = [one for one in wanted if one not in connection.scopes]
    if wanted and {*missing} <= {*connection.refused_scopes}:
        return None
    is_ready = connection.state is ConnectionState.READY
    return replace(
        connection,
        state=ConnectionState.SIGNED_OUT if is_ready else connection.state,
        wanted_scopes=_join(missing, connection.wanted_scopes)[:MAX_SCOPES],
    )


def settle_scopes(
    connection: Connection, *, asked: Sequence[str], given: Sequence[str]
) -> Connection:
    """Return a connection after its owner was asked for scopes, and has given some."""
    in_vain = [one for one in connection.wanted_scopes if one in asked or one == UNNAMED]
    got = {*given}
    if not got <= {*connection.scopes}:
        # They may be those that the server did not name.
        got.add(UNNAMED)
    refused = [one for one in _join(in_vain, connection.refused_scopes) if one not in got]
    return replace(
        connection,
        scopes=tuple(given),
        wanted_scopes=(),
        refused_scopes=tuple(refused[:MAX_SCOPES]),
    )


def describe_missing(connection: Connection, wanted: Sequence[str]) -> str:
    """Say that a call is refused for scopes that another sign-in would not bring."""
    names = name_scopes(wanted)
    return (
        f"The sign-in of {connection.title} does not have the permissions that its server wants"
        f" for this call{f' ({names})' if names else ''}, and its owner is not asked for them"
        f" again. `backburner connect {connection.name} --scope SCOPE` asks for more."
    )


def _join(*scopes: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for group in scopes for one in group))
