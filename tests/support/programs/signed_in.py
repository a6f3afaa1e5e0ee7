"""Programs that need their own sign-in, and an owner who has signed in to them."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from backburner.process.sign_ins.runner import SignedInPrograms
from backburner.process.sign_ins.sign_in import Owner

#: A Python that confined programs can start.
PYTHON = next(
    path for path in map(Path, ("/usr/bin/python3", "/usr/local/bin/python3")) if path.exists()
)
GH = f"""#!{PYTHON}
import json, os, pathlib, sys
if token := os.environ.get("GH_TOKEN"):
    hosts = {{"github.com": {{"user": "octocat", "oauth_token": token}}}}
else:
    hosts = json.loads((pathlib.Path(os.environ["GH_CONFIG_DIR"]) / "hosts.yml").read_text())
[(host, entry)] = hosts.items()

def attempt(name, call):
    try:
        print(name, "worked", call())
    except OSError as error:
        print(name, "failed", error.errno)

match sys.argv[1:]:
    case ["api", "leak"]:
        print("the token is", entry["oauth_token"])
    case ["api", "rewrite"]:
        (pathlib.Path(os.environ["GH_CONFIG_DIR"]) / "hosts.yml").write_text("gone")
    case ["api", "read", path]:
        attempt("read", pathlib.Path(path).read_text)
    case ["api", "write", path]:
        attempt("write", lambda: pathlib.Path(path).write_text("written"))
    case ["api", "environment"]:
        print(*sorted(os.environ))
    case ["api", "start", program]:
        attempt("fork", os.fork)
        attempt("spawn", lambda: os.posix_spawn(program, [program], os.environ))
        attempt("exec", lambda: os.execv(program, [program]))
    case ["api", "wait"]:
        pathlib.Path(".waiting").write_text("")
        pathlib.Path(".go").read_text()
    case _:
        print("signed in as", entry["user"], "at", host, "in", os.getcwd(), sys.argv[1:])
"""
KUBECTL = f"""#!{PYTHON}
import json, os, sys
settings = json.load(open(os.environ["KUBECONFIG"]))
[user] = settings["users"]
known = "exec" in user["user"], user["user"]["token"] == "kubectl-token"
print("kubectl", sys.argv[1:], settings["current-context"], known)
"""
HOSTS = """\
github.com:
    git_protocol: https
    users:
        octocat:
            oauth_token: {token}
    user: octocat
    oauth_token: {token}
"""
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- cluster:
    server: https://127.0.0.1:6443
  name: kind
contexts:
- context:
    cluster: kind
    user: developer
  name: kind-one
current-context: kind-one
preferences: {}
users:
- name: developer
  user:
    token: kubectl-token
"""


@dataclass
class SignedInOwner:
    """An owner with a home folder, and programs on a PATH."""

    root: Path
    token: str = "gho_0123456789abcdef"  # noqa: S105 (of nobody)

    def __post_init__(self) -> None:
        for folder in (self.home, self.programs, self.folder):
            folder.mkdir()
        # A program that waits opens the first one, and then the other.
        for name in (".waiting", ".go"):
            os.mkfifo(self.folder / name)
        self.install("gh", GH)
        self.install("kubectl", KUBECTL)
        self.write(".config/gh/hosts.yml", HOSTS.format(token=self.token))
        self.write(".kube/config", KUBECONFIG)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def programs(self) -> Path:
        return self.root / "programs"

    @property
    def folder(self) -> Path:
        """Return the folder of the agent."""
        return self.root / "folder"

    def install(self, name: str, script: str) -> Path:
        path = self.programs / name
        path.write_text(script)
        path.chmod(0o755)
        return path

    def write(self, name: str, content: object) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def sign_ins(self, *readable: Path, **variables: str) -> SignedInPrograms:
        path = f"{self.programs}:{os.environ['PATH']}"
        return SignedInPrograms(Owner(self.home, {"PATH": path, **variables}), readable=readable)
