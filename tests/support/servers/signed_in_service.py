"""A service on loopback, and programs that get an answer from it only with their own sign-in."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from support.programs.signed_in import KUBECONFIG, PYTHON, SignedInOwner

KUBECTL_TOKEN = "kubectl-token"  # noqa: S105 (of nobody)
#: Sends its arguments with its token, and prints the answer.
PROGRAM = """
request = http.client.HTTPConnection(address)
request.request("POST", "/", json.dumps(sys.argv), {"Authorization": token})
answer = request.getresponse()
print(answer.read().decode())
sys.exit(answer.status != 200)
"""
GH = f"""#!{PYTHON}
import http.client, json, os, sys
hosts = json.load(open(os.environ["GH_CONFIG_DIR"] + "/hosts.yml"))
address, token = "%s", hosts["github.com"]["oauth_token"]
{PROGRAM}"""
KUBECTL = f"""#!{PYTHON}
import http.client, json, os, sys
settings = json.load(open(os.environ["KUBECONFIG"]))
address = settings["clusters"][0]["cluster"]["server"].removeprefix("http://")
token = settings["users"][0]["user"]["token"]
{PROGRAM}"""


class SignedInService:
    """Answers `gh` and `kubectl` of an owner, by the words that a call begins with."""

    def __init__(self, owner: SignedInOwner) -> None:
        self._tokens = {"gh": owner.token, "kubectl": KUBECTL_TOKEN}
        self._answers: dict[str, list[str]] = {}
        #: The calls that were answered.
        self.calls: list[str] = []

    def say(self, call: str, *answers: str) -> None:
        """Give these answers one after the other; the last of them again and again."""
        self._answers[call] = [*answers]

    def count(self, call: str) -> int:
        return sum(made.startswith(call) for made in self.calls)

    def answer(self, argv: Sequence[str], token: str | None) -> tuple[int, str]:
        program = argv[0].rpartition("/")[2]
        if token != self._tokens[program]:
            return 401, "Sign in first."
        line = " ".join((program, *argv[1:]))
        self.calls.append(line)
        answers = next(given for call, given in self._answers.items() if line.startswith(call))
        return 200, answers.pop(0) if len(answers) > 1 else answers[0]


@contextmanager
def serving_signed_in(owner: SignedInOwner) -> Iterator[SignedInService]:
    """Serve, and install the programs of the owner that ask it."""
    service = SignedInService(owner)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, text = service.answer(json.loads(body), self.headers["Authorization"])
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        address = f"127.0.0.1:{server.server_port}"
        owner.install("gh", GH % address)
        owner.install("kubectl", KUBECTL)
        owner.write(
            ".kube/config", KUBECONFIG.replace("https://127.0.0.1:6443", f"http://{address}")
        )
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
