"""A tool call in one line, for lists: short, and without what may be a secret."""

import re
from collections.abc import Mapping
from typing import Any

from backburner.core.validation import canonical_json, escape_hidden

MAX_SUMMARY_CHARS = 100
#: A longer value is only counted: it is the content of something, not its name.
MAX_VALUE_CHARS = 60
#: Enough of a command to find the secrets in the part that is shown.
_MAX_READ_CHARS = 1_000
HIDDEN = "[hidden]"
ELLIPSIS = "…"

_SENSITIVE_WORDS = (
    r"pass(?:word|wd|phrase|code)?|pwd|secrets?|tokens?|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|credentials?|authorization|cookie|session[_-]?id|otp"
)
#: The name of an argument, an option or a variable whose value is a secret.
_SECRET_NAME = re.compile(
    rf"(?:^|[_\W]|(?<=[a-z])(?=[A-Z]))(?:{_SENSITIVE_WORDS})s?$", re.IGNORECASE
)
_VALUE = r"""(?:"[^"]*"?|'[^']*'?|[^\s"']+)"""
#: What to replace in a text, in this order; the first group stays.
_SECRETS = (
    # An address with a user name and a password.
    re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@]+(?=@)", re.IGNORECASE),
    # Headers, up to the quote that ends them.
    re.compile(r"(\b(?:authorization|cookie)[\"']?\s*[:=]\s*)[^\"']+", re.IGNORECASE),
    re.compile(rf"(\b(?:bearer|basic)\s+){_VALUE}", re.IGNORECASE),
    # PGPASSWORD=abc, "api_key": "abc".
    re.compile(rf"""(\b[\w-]*(?:{_SENSITIVE_WORDS})["']?\s*[=:]\s*){_VALUE}""", re.IGNORECASE),
    # --password abc
    re.compile(rf"(\b(?:[\w-]*[_-])?(?:{_SENSITIVE_WORDS})\s+){_VALUE}", re.IGNORECASE),
    # https://host/?key=abc
    re.compile(r"([?&](?:key|sig|signature|code)=)[^&\s\"']+", re.IGNORECASE),
    # curl -u name:password
    re.compile(rf"((?:^|\s)(?:-u|--user)(?:\s+|=)?){_VALUE}"),
    # Keys by their usual beginnings.
    re.compile(
        r"(\b)(?:(?:sk|pk|rk|gh[a-z]|github_pat|glpat|xox[a-z]|bb)[-_]|AKIA|ASIA|AIza|eyJ)[\w.-]{8,}"
    ),
    # Any other long piece with letters and digits.
    re.compile(r"()(?<![\w/.])(?=[\w+=-]*\d)(?=[\w+=-]*[A-Za-z])[\w+=-]{32,}"),
)


def summarize_arguments(arguments: Mapping[str, Any]) -> str:
    """Summarise the arguments of a call: a command as it is typed, others by name and value."""
    command = arguments.get("command")
    if isinstance(command, str):
        return _shorten(_hide_secrets(_one_line(command[:_MAX_READ_CHARS])), MAX_SUMMARY_CHARS)
    parts = [f"{name}={_show_value(name, value)}" for name, value in arguments.items()]
    return _shorten(_one_line(" ".join(parts)), MAX_SUMMARY_CHARS)


def _show_value(name: str, value: object) -> str:
    if _SECRET_NAME.search(name):
        return HIDDEN
    text = value if isinstance(value, str) else canonical_json(value)
    if len(text) > MAX_VALUE_CHARS or "\n" in text:
        return f"({len(text):,} characters)"
    return _hide_secrets(_one_line(text))


def _hide_secrets(text: str) -> str:
    for pattern in _SECRETS:
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    return text


def _one_line(text: str) -> str:
    return escape_hidden(" ".join(text.split()))


def _shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - len(ELLIPSIS)] + ELLIPSIS
