"""PgBouncer in front of a server, for soaks; the program is that of the system."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import make_url

from support.memory_disk import memory_disk
from support.servers.postgres_server import choose_runner, running

CONFIG = """\
[databases]
* = host={server}
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
auth_type = any
pool_mode = {mode}
max_client_conn = 200
default_pool_size = {connections}
"""


@contextmanager
def pgbouncer(server: str, mode: str, *, connections: int) -> Iterator[str]:
    """Run it in front of a server that has a socket, and give the URL for its clients."""
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    assert Path(program).exists(), "Install pgbouncer first, on Debian: apt-get install pgbouncer"
    url = make_url(server)
    folder = Path(tempfile.mkdtemp(prefix="bb-pgb-", dir=memory_disk() or "/tmp"))  # noqa: S108
    try:
        runner = choose_runner(folder)
        config = folder / "pgbouncer.ini"
        filled = {"server": f"{url.query['host']} user=postgres", "folder": folder, "mode": mode}
        config.write_text(CONFIG.format(**filled, connections=connections))
        config.chmod(0o644)
        own = url.set(query={"host": str(folder), "port": "6432"})
        with running([program, str(config)], text := own.render_as_string(), folder, runner):
            yield text
    finally:
        shutil.rmtree(folder)
