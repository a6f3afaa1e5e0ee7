"""A PostgreSQL server that may not do: whether it does, and in words why not.

While a connection is being made a server's answer is only text, perhaps in its own language: what
is not understood is passed on as it is.
"""

import re

from sqlalchemy import URL, Connection, text

from backburner.core.errors import StoreFailed

_FACTS = text(
    "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',"
    " current_setting('server_encoding')"
)
_NO_DATABASE = re.compile(r'database "(.*)" does not exist')
_NO_RIGHT, _LOCK_TIMEOUT = "42501", "55P03"
#: Classes of errors that are the server's: connection, state, resources, operator, system.
_ITS_OWN = ("08", "25", "53", "57", "58")


def name_of(url: URL) -> str:
    return f"The database {url.database or url.username or ''} of {_server(url)}"


def check(connection: Connection, name: str) -> None:
    """Refuse a database that would take no rows, or not every text."""
    is_standby, is_read_only, encoding = connection.execute(_FACTS).one()
    if is_standby:
        raise _refuse(f"{name} is a copy that follows another server.", "Use that server's URL.")
    if is_read_only:
        raise _refuse(
            f"{name} may only be read.", "See what sets default_transaction_read_only there."
        )
    if encoding != "UTF8":
        raise _refuse(
            f"{name} keeps text as {encoding}, which does not have every letter.",
            "Make one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0.",
        )


def explain(url: URL, error: BaseException) -> StoreFailed | None:
    """Say what is wrong with a server or the way to it; nothing if it is neither."""
    said = _first_words(url, error)
    state = getattr(error, "sqlstate", None)
    if state == _NO_RIGHT:
        return _refuse(
            f"{name_of(url)} does not let its user work: {said}.",
            "Make that user the owner of the database.",
        )
    if state == _LOCK_TIMEOUT:
        return StoreFailed(
            f"{name_of(url)} has been held by another process for too long: {said}.",
            hint="See who is migrating it, and start again.",
        )
    if state is not None and state.startswith(_ITS_OWN):
        return StoreFailed(f"{name_of(url)} does not work: {said}.", hint="See the server's log.")
    return _explain_refusal(url, said) if state is None else None


def _explain_refusal(url: URL, said: str) -> StoreFailed:
    if "password" in said:
        return _refuse(
            f"{_server(url)} does not let {url.username or 'you'} in: {said}.",
            "Check the user and the password of --database-url.",
        )
    if found := _NO_DATABASE.search(said):
        return _refuse(
            f"{_server(url)} has no database {found[1]}.",
            f"Make it with `createdb {found[1]}`, or name another with --database-url.",
        )
    return StoreFailed(
        f"{_server(url)} cannot be used: {said}.",
        hint="See that it is running, and that --database-url is right.",
    )


def _server(url: URL) -> str:
    asked = url.query.get("host", "")
    host = url.host or (asked if isinstance(asked, str) else ",".join(asked)) or "this machine"
    return f"PostgreSQL at {host}:{url.port}" if url.port else f"PostgreSQL at {host}"


def _first_words(url: URL, error: BaseException) -> str:
    """Give the line that says it, without what stands before it in every one."""
    line = str(error).strip().partition("\n")[0]
    said = line.rpartition("failed: ")[2].removeprefix("FATAL:").strip().rstrip(".")
    # Nothing is known to show it; this is about what is not known.
    for secret in {url.password, url.render_as_string(hide_password=False)} - {None, ""}:
        said = said.replace(str(secret), "***")
    return said or type(error).__name__


def _refuse(message: str, hint: str) -> StoreFailed:
    return StoreFailed(message, hint=hint, permanent=True)
