"""The sign-in of a program: read from its own files, and rebuilt from what is known of it.

Only settings that say who signs in where are taken over. A setting that names a program to run, or
one that nobody here knows, is left behind: so the copy runs nothing, whatever its original says.
Sign-ins that their program has to rewrite are refused, because a copy would lose the new token.
"""

import base64
import configparser
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from backburner.core.errors import ProcessFailed
from backburner.process.sign_ins.plain_yaml import read_yaml

#: Of a file of settings.
_MAX_FILE_BYTES = 2**20
_KUBECTL_CLUSTER = ("server", "tls-server-name", "certificate-authority-data", "proxy-url")
_KUBECTL_USER = ("token", "client-certificate-data", "client-key-data", "username", "password")
_KUBECTL_CONTEXT = ("cluster", "user", "namespace")
#: By files that hold the same; kubectl takes paths from the folder of its settings.
_KUBECTL_FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}
_KUBECTL_REWRITTEN = ("exec", "auth-provider")
_NPM_SETTING = re.compile(
    r"registry|@[\w.~-]+:registry|//[^\s=]+:(?P<secret>_authToken|_auth|_password)"
    r"|//[^\s=]+:(username|email|always-auth)"
)
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_AWS_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_AWS_SETTINGS = frozenset(
    """
    region output role_arn source_profile external_id role_session_name duration_seconds
    endpoint_url
    """.split()
)
_AWS_SECRETS = ("aws_secret_access_key", "aws_session_token")
#: Each names a file or folder with sign-ins, or several with colons between them; without it, they
#: are in hidden folders of the home folder.
_PLACE_VARIABLES = (
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "CLAUDE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG_USERCONFIG",
    "XDG_CONFIG_HOME",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """The credentials that a program gets."""

    #: Who signs in, in words for the user.
    account: str
    #: Files below the home folder of the program.
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Never shown, also where the program prints them.
    secrets: frozenset[str] = field(repr=False)
    #: Files of the owner that it was read from.
    sources: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Owner:
    """The home folder and environment in which the owner has signed in."""

    home: Path
    variables: Mapping[str, str] = field(repr=False)

    def path(self, variable: str, default: str) -> Path:
        named = self.variables.get(variable)
        return Path(named) if named and Path(named).is_absolute() else self.home / default

    def settings(self, name: str) -> Path:
        return self.path("XDG_CONFIG_HOME", ".config") / name


def find_sign_in_places(variables: Mapping[str, str]) -> Sequence[Path]:
    """List the files and folders with sign-ins that an environment names."""
    named = [part for name in _PLACE_VARIABLES for part in variables.get(name, "").split(":")]
    return [Path(part) for part in named if Path(part).is_absolute()]


def read_sign_in(program: str, owner: Owner) -> SignIn:
    """Read how the owner has signed in to a program.

    Raises `ProcessFailed` with the reason if they have not, or not so that it can be used.
    """
    return _READERS[program](owner)


def _read_gh(owner: Owner) -> SignIn:
    for name in ("GH_TOKEN", "GITHUB_TOKEN"):
        if token := owner.variables.get(name):
            return SignIn(
                account=f"the token in {name}",
                variables={"GH_TOKEN": token},
                secrets=frozenset({token}),
            )
    folder = owner.variables.get("GH_CONFIG_DIR")
    path = (Path(folder) if folder else owner.settings("gh")) / "hosts.yml"
    hosts = _mapping(_read_settings(path, "gh", "gh auth login", read_yaml))
    kept = {}
    for host, entry in hosts.items():
        user = _text(_mapping(entry).get("user"))
        of_user = _mapping(_mapping(_mapping(entry).get("users")).get(user))
        token = _text(_mapping(entry).get("oauth_token")) or _text(of_user.get("oauth_token"))
        if user and token:
            kept[host] = {"user": user, "oauth_token": token, "git_protocol": "https"} | {
                "users": {user: {"oauth_token": token}}
            }
    if hosts and not kept:
        raise _unusable(
            "The token of gh is in the keyring of the desktop, which Backburner cannot read.",
            "Sign in with: gh auth login --insecure-storage",
        )
    if not kept:
        raise _not_signed_in("gh", "gh auth login")
    return SignIn(
        account=", ".join(f"{entry['user']} at {host}" for host, entry in kept.items()),
        files={
            ".config/gh/hosts.yml": json.dumps(kept),
            ".config/gh/config.yml": '{"version": "1", "git_protocol": "https"}',
        },
        secrets=frozenset(str(entry["oauth_token"]) for entry in kept.values()),
        sources=(path,),
    )


def _read_kubectl(owner: Owner) -> SignIn:
    named = owner.variables.get("KUBECONFIG", "")
    if ":" in named:
        raise _unusable("KUBECONFIG names several files.", "Name one, with all contexts in it.")
    path = Path(named) if named else owner.home / ".kube" / "config"
    login = "kubectl config set-credentials"
    settings = _mapping(_read_settings(path, "kubectl", login, read_yaml))
    clusters = {
        name: _inline(entry, path, _KUBECTL_CLUSTER)
        | _flag(entry, "insecure-skip-tls-verify")
        | _flag(entry, "disable-compression")
        for name, entry in _named(settings, "clusters", "cluster")
    }
    users = {
        name: _inline(entry, path, _KUBECTL_USER)
        for name, entry in _named(settings, "users", "user")
        if not any(key in entry for key in _KUBECTL_REWRITTEN)
    }
    contexts = {
        name: {key: _text(entry.get(key)) for key in _KUBECTL_CONTEXT if entry.get(key)}
        for name, entry in _named(settings, "contexts", "context")
        if entry.get("user") in users and entry.get("cluster") in clusters
    }
    current = _text(settings.get("current-context"))
    if current not in contexts:
        raise _unusable(
            f"The current context of kubectl ({current or 'none'}) has no user, or one whose token"
            " comes from another program.",
            "Use a context with a token or a client certificate in its settings.",
        )
    copy = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "clusters": [{"name": name, "cluster": entry} for name, entry in clusters.items()],
        "users": [{"name": name, "user": entry} for name, entry in users.items()],
        "contexts": [{"name": name, "context": entry} for name, entry in contexts.items()],
    }
    secret = ("token", "password", "client-key-data")
    return SignIn(
        account=f"{contexts[current]['user']}, context {current}",
        files={".kube/config": json.dumps(copy)},
        secrets=frozenset(user[key] for user in users.values() for key in secret if user.get(key)),
        sources=(path,),
    )


def _inline(entry: Mapping[str, Any], path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """Take over known settings, with the content of files in place of their paths."""
    kept = {key: _text(entry[key]) for key in keys if entry.get(key)}
    for name, key in _KUBECTL_FILES.items():
        if key in keys and entry.get(name):
            data = _read_bytes(path.parent / _text(entry[name]))
            kept[key] = base64.b64encode(data).decode()
    if "token" in keys and entry.get("tokenFile"):
        token = _read_bytes(path.parent / _text(entry["tokenFile"]))
        kept["token"] = token.decode(errors="replace").strip()
    return kept


def _flag(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {key: True} if entry.get(key) in ("true", True) else {}


def _named(
    settings: Mapping[str, Any], key: str, kind: str
) -> Sequence[tuple[str, dict[str, Any]]]:
    entries = settings.get(key)
    return [
        (_text(_mapping(entry).get("name")), _mapping(_mapping(entry).get(kind)))
        for entry in (entries if isinstance(entries, list) else ())
    ]


def _read_npm(owner: Owner) -> SignIn:
    path = owner.path("NPM_CONFIG_USERCONFIG", ".npmrc")
    lines, secrets, registries = [], set(), []
    for line in _read_settings(path, "npm", "npm login", str.splitlines):
        name, sign, value = (part.strip() for part in line.partition("="))
        known = _NPM_SETTING.fullmatch(name) if sign else None
        if known is None:
            continue
        value = _VARIABLE.sub(lambda found: owner.variables.get(found[1], ""), value.strip("\"'"))
        lines.append(f"{name}={value}")
        if known["secret"] and value:
            secrets.add(value)
            registries.append(name.removeprefix("//").rpartition(":")[0].rstrip("/"))
    if not secrets:
        raise _not_signed_in("npm", "npm login")
    return SignIn(
        account=", ".join(registries),
        files={".npmrc": "\n".join((*lines, ""))},
        secrets=frozenset(secrets),
        sources=(path,),
    )


def _read_aws(owner: Owner) -> SignIn:
    regions = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE")
    variables = {name: owner.variables[name] for name in regions if name in owner.variables}
    keys = [name.upper() for name in _AWS_KEYS if name.upper() in owner.variables]
    if "AWS_SECRET_ACCESS_KEY" in keys:
        return SignIn(
            account="the key in AWS_ACCESS_KEY_ID",
            variables=variables | {name: owner.variables[name] for name in keys},
            secrets=frozenset(owner.variables[name] for name in keys[1:]),
        )
    path = owner.path("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials")
    config = owner.path("AWS_CONFIG_FILE", ".aws/config")
    credentials = _read_settings(path, "aws", "aws configure", _read_ini)
    has_keys = {
        name: {key: values[key] for key in _AWS_KEYS if key in values}
        for name, values in credentials.items()
        if all(key in values for key in _AWS_KEYS[:2])
    }
    profile = variables.get("AWS_PROFILE", "default")
    settings = _read_settings(config, "aws", "", _read_ini) if config.exists() else {}
    kept = {
        name: {key: values[key] for key in values if key in _AWS_SETTINGS}
        for name, values in settings.items()
        if name == "default" or name.startswith("profile ")
    }
    chosen = kept.get(profile if profile == "default" else f"profile {profile}", {})
    if profile not in has_keys and chosen.get("source_profile") not in has_keys:
        raise _unusable(
            f"The profile {profile} of aws has no access key in {path}.",
            "Profiles that sign in through a browser or another program cannot be used.",
        )
    return SignIn(
        account=f"profile {profile}",
        files={".aws/credentials": _write_ini(has_keys), ".aws/config": _write_ini(kept)},
        variables=variables,
        secrets=frozenset(
            values[key] for values in has_keys.values() for key in _AWS_SECRETS if key in values
        ),
        sources=(path, config),
    )


def _read_ini(text: str) -> Mapping[str, Mapping[str, str]]:
    parser = configparser.RawConfigParser(strict=False, default_section="")
    parser.read_string(text)
    return {name: dict(parser.items(name)) for name in parser.sections()}


def _write_ini(sections: Mapping[str, Mapping[str, str]]) -> str:
    lines = []
    for name, values in sections.items():
        one_line = {key: value for key, value in values.items() if "\n" not in value}
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in one_line.items())]
    return "\n".join((*lines, ""))


def _read_git(owner: Owner) -> SignIn:
    paths = (owner.home / ".git-credentials", owner.settings("git") / "credentials")
    accounts: dict[str, tuple[str, str]] = {}
    sources = [path for path in paths if path.exists()]
    for path in sources:
        for line in _read_settings(path, "git", "", str.splitlines):
            parts = urlsplit(line.strip())
            host = parts.netloc.rpartition("@")[2]
            if parts.scheme in ("http", "https") and parts.username and parts.password:
                signed = (unquote(parts.username), unquote(parts.password))
                # The first one counts, as for git.
                accounts.setdefault(f"{parts.scheme}://{host}/", signed)
    if not accounts:
        raise _unusable(
            "git has no sign-in in ~/.git-credentials. Backburner cannot read those in a keyring,"
            " from another program, or for ssh.",
            "Store one with: git config --global credential.helper store",
        )
    headers, secrets = [], set()
    for address, (user, password) in accounts.items():
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        secrets |= {password, basic}
        headers += [f'[http "{address}"]', f'extraHeader = "Authorization: Basic {basic}"']
    return SignIn(
        account=", ".join(f"{user} at {urlsplit(at).netloc}" for at, (user, _) in accounts.items()),
        files={".gitconfig": "\n".join((*headers, *_git_identity(owner), ""))},
        secrets=frozenset(secrets),
        sources=tuple(sources),
    )


def _git_identity(owner: Owner) -> Sequence[str]:
    """Return the name under which the owner commits, for the merges of a pull."""
    try:
        text = _read_bytes(owner.home / ".gitconfig").decode(errors="replace")
    except ProcessFailed:
        text = ""
    lines = ["[user]", "useConfigOnly = true"]
    section = ""
    for line in map(str.strip, text.splitlines()):
        section = line if line.startswith("[") else section
        plain = re.fullmatch(r"(name|email)\s*=\s*([\w .@+-]+)", line, re.IGNORECASE)
        if plain and section.casefold() == "[user]":
            lines.append(f"{plain[1]} = {plain[2]}")
    return lines


_READERS: Mapping[str, Callable[[Owner], SignIn]] = {
    "aws": _read_aws,
    "gh": _read_gh,
    "git": _read_git,
    "kubectl": _read_kubectl,
    "npm": _read_npm,
}


def _read_settings(path: Path, program: str, login: str, parse: Callable[[str], Any]) -> Any:
    if not path.exists():
        raise _not_signed_in(program, login)
    data = _read_bytes(path)
    try:
        return parse(data.decode())
    except (ValueError, configparser.Error) as error:
        reason = str(error).splitlines()[0] if isinstance(error, ValueError) else "not readable"
        raise _unusable(f"{path} cannot be read: {reason}", "") from None


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _unusable(f"{path} cannot be read: {error.strerror}.", "") from None
    if len(data) > _MAX_FILE_BYTES:
        raise _unusable(f"{path} is too large.", "")
    return data


def _not_signed_in(program: str, login: str) -> ProcessFailed:
    hint = f"The user can sign in with: {login}" if login else ""
    return _unusable(f"{program} is not signed in.", hint)


def _unusable(message: str, hint: str) -> ProcessFailed:
    return ProcessFailed(message, hint=hint, permanent=True)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
