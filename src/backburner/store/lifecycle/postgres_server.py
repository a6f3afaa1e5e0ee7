"""Checks whether a PostgreSQL database can be used, and explains errors of the server.

An error while connecting is only text, perhaps in the language of the server: a text that is not
recognized is passed on as it is.
"""

import re
from typing import Any

from sqlalchemy import URL, Connection, Engine, text

from backburner.core.errors import StoreFailed
from backburner.store.failures import FREE_SPACE, is_disk_full

_SELECT_PROPERTIES = text(
    "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',"
    " current_setting('server_encoding')"
)
_SELECT_PROCESS = text("SELECT pg_backend_pid()")
#: On a busy pooler the process may be another one each time, but not always.
_PROBES = 8
_NO_DATABASE = re.compile(r'database "(.*)" does not exist')
#: Of the driver, also when our own deadline has ended the connection.
_LOST = "server closed the connection unexpectedly"
_NO_RIGHT, _LOCK_TIMEOUT = "42501", "55P03"
#: Classes of server errors: connection, state, resources, operator, system.
_SERVER_ERRORS = ("08", "25", "53", "57", "58")


def name_of(url: URL) -> str:
    return f"The database {url.database or url.username or ''} of {_server(url)}"


def check(connection: Connection, name: str) -> None:
    """Refuse a database that cannot be written, or cannot store all text."""
    is_standby, is_read_only, encoding = connection.execute(_SELECT_PROPERTIES).one()
    if is_standby:
        raise _refuse(f"{name} is on a read-only standby server.", "Use the URL of the primary.")
    if is_read_only:
        raise _refuse(f"{name} is read-only.", "Check default_transaction_read_only there.")
    if encoding != "UTF8":
        raise _refuse(
            f"{name} has the encoding {encoding}, and Backburner needs UTF8.",
            "Create one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0.",
        )


def is_transaction_pooler(engine: Engine) -> bool:
    """See whether the server is behind a pooler whose connections are shared by transactions.

    A pooler gives its clients another process id than the server's. In transaction mode, two of
    them get the same server process one after the other; in session mode never.
    """
    with engine.connect() as first:
        process = first.execute(_SELECT_PROCESS).scalar_one()
        driver: Any = first.connection.driver_connection
        if process == driver.info.backend_pid:
            return False
        first.commit()
        with engine.connect() as second:
            seen: dict[Connection, set[int]] = {first: {process}, second: set()}
            for _ in range(_PROBES):
                for connection, processes in seen.items():
                    processes.add(connection.execute(_SELECT_PROCESS).scalar_one())
                    connection.commit()
    return bool(seen[first] & seen[second]) or max(map(len, seen.values())) > 1


def explain(url: URL, error: BaseException) -> StoreFailed | None:
    """Explain an error of the server or of the connection; None: it is another error."""
    message = _first_line(url, error)
    state = getattr(error, "sqlstate", None)
    if state == _NO_RIGHT:
        return _refuse(
            f"{name_of(url)} denies its user access: {message}.",
            "Make that user the owner of the database.",
        )
    if is_disk_full(error):
        return StoreFailed(f"The disk of {_server(url)} is full.", hint=FREE_SPACE)
    if state == _LOCK_TIMEOUT:
        return StoreFailed(
            f"{name_of(url)} is locked by another process: {message}.",
            hint="Find the process that is migrating it, then start again.",
        )
    if state is not None and state.startswith(_SERVER_ERRORS):
        return StoreFailed(f"{name_of(url)} failed: {message}.", hint="Check the server's log.")
    return _explain_refusal(url, message) if state is None else None


def _explain_refusal(url: URL, message: str) -> StoreFailed:
    if "password" in message:
        return _refuse(
            f"{_server(url)} refused the sign-in of {url.username or 'this user'}: {message}.",
            "Check the user and the password of --database-url.",
        )
    if match := _NO_DATABASE.search(message):
        return _refuse(
            f"{_server(url)} has no database {match[1]}.",
            f"Create it with `createdb {match[1]}`, or name another with --database-url.",
        )
    if message == _LOST:
        message = "it closed the connection or did not answer in time"
    return StoreFailed(
        f"{_server(url)} cannot be used: {message}.",
        hint="Check that it is running, and that --database-url is right.",
    )


def _server(url: URL) -> str:
    hosts = url.query.get("host", "")
    host = url.host or (hosts if isinstance(hosts, str) else ",".join(hosts)) or "this machine"
    return f"PostgreSQL at {host}:{url.port}" if url.port else f"PostgreSQL at {host}"


def _first_line(url: URL, error: BaseException) -> str:
    """Return the first line of an error, without its standard prefix."""
    line = str(error).strip().partition("\n")[0]
    message = line.rpartition("failed: ")[2].removeprefix("FATAL:").strip().rstrip(".")
    # No error is known to contain a secret; this is a precaution.
    for secret in {url.password, url.render_as_string(hide_password=False)} - {None, ""}:
        message = message.replace(str(secret), "***")
    return message or type(error).__name__


def _refuse(message: str, hint: str) -> StoreFailed:
    return StoreFailed(message, hint=hint, permanent=True)
