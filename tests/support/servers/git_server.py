"""A git server over HTTP on this machine that wants a password, and remembers what it was sent."""

import base64
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

GIT = shutil.which("git") or "git"


class GitServer(ThreadingHTTPServer):
    """Serves the repositories of a folder to one account, or redirects everything elsewhere."""

    daemon_threads = True

    def __init__(self, folder: Path, user: str, password: str, redirect: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.account = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.redirect = redirect
        #: The `Authorization` header of each request.
        self.authorizations: list[str] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def address(self) -> str:
        return f"http://{self.host}"


class _Handler(BaseHTTPRequestHandler):
    server: GitServer

    def do_GET(self) -> None:
        sent = self.headers.get("Authorization", "")
        self.server.authorizations.append(sent)
        if self.server.redirect:
            self.send_response(302)
            self.send_header("Location", self.server.redirect + self.path)
            self.end_headers()
        elif sent != f"Basic {self.server.account}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
        else:
            self._run_git()

    def do_POST(self) -> None:
        self.do_GET()

    def _run_git(self) -> None:
        path, _, query = self.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "someone",
        }
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        ran = subprocess.run(
            [GIT, "http-backend"], input=body, env=environment, capture_output=True, check=True
        )
        head, _, content = ran.stdout.partition(b"\r\n\r\n")
        fields = [line.decode().split(": ", 1) for line in head.split(b"\r\n")]
        status = dict(fields).get("Status", "200 OK")
        self.send_response(int(status[:3]))
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve_git(folder: Path, user: str, password: str, redirect: str = "") -> Iterator[GitServer]:
    with GitServer(folder, user, password, redirect) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
