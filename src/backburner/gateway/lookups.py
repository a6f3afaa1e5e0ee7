"""Looking up the names of hosts: in threads of their own, and few at a time for one domain.

The system's resolver blocks a thread for half a minute if a name server does not answer, also when
nobody waits any more, and anybody can have such a name server. The threads of the event loop are
few, and others need them: for files, folders and programs.
"""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import ip_address

#: Threads at one time, and those for names of one domain.
MAX_LOOKUPS = 64
MAX_OF_DOMAIN = 8
#: Of a name, the labels that most domains consist of. Others only share their room.
_DOMAIN_LABELS = 2

_Key = tuple[asyncio.AbstractEventLoop, str, int]


def ask_system(host: str, port: int) -> Sequence[str]:
    results = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in results]


class Lookups:
    """Returns the addresses of a host, as text. Raises `OSError` or `UnicodeError`."""

    def __init__(self, ask: Callable[[str, int], Sequence[str]] = ask_system) -> None:
        self._ask = ask
        self._running: dict[_Key, asyncio.Future[Sequence[str]]] = {}
        self._domains = Counter[str]()
        #: The counts are those of threads, which end whenever they do.
        self._lock = threading.Lock()

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        if _is_address(host):
            return [host]
        key = asyncio.get_running_loop(), host, port
        found = self._running.get(key)
        if found is None:
            found = self._running[key] = self._start(key)
        # Others may be waiting for it too.
        return await asyncio.shield(found)

    def _start(self, key: _Key) -> "asyncio.Future[Sequence[str]]":
        loop, host, port = key
        domain = ".".join(host.lower().rstrip(".").split(".")[-_DOMAIN_LABELS:])
        with self._lock:
            if self._domains.total() >= MAX_LOOKUPS or self._domains[domain] >= MAX_OF_DOMAIN:
                raise OSError(f"Too many names are being looked up: {host}.")
            self._domains[domain] += 1
        found = loop.create_future()

        def end(addresses: Sequence[str], error: Exception | None) -> None:
            del self._running[key]
            if error is None:
                found.set_result(addresses)
            else:
                found.set_exception(error)
                # Nobody may be waiting any more.
                found.exception()

        def work() -> None:
            addresses: Sequence[str] = ()
            error: Exception | None = None
            try:
                addresses = self._ask(host, port)
            except Exception as raised:  # noqa: BLE001 (whoever waits gets it)
                error = raised
            self._leave(domain)
            try:
                loop.call_soon_threadsafe(end, addresses, error)
            except RuntimeError:
                # The loop is gone.
                self._running.pop(key, None)

        # The end of the program waits for no thread that is a daemon.
        thread = threading.Thread(target=work, name=f"lookup {host}"[:60], daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # The system gives no more threads.
            self._leave(domain)
            raise OSError(f"{host} cannot be looked up now: there are too many threads.") from None
        return found

    def _leave(self, domain: str) -> None:
        with self._lock:
            self._domains[domain] -= 1
            self._domains += Counter()


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
