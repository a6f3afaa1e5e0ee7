"""The secrets that a server was given, taken out of what it sends: some repeat our headers."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from backburner.core.connections.naming import is_secret_name

#: Shorter values are words that results may well have.
MIN_SECRET_CHARS = 12
#: Not "secret": questions of servers that ask for one are refused.
REPLACEMENT = "[hidden]"
#: Names of variables whose values are secrets: those of headers, and some that only variables have.
_SECRET_VARIABLE = re.compile(
    r"key|token|secret|passw|passphrase|auth(?!ors?(?:_|$))|signature|credential|cookie"
    r"|(?:^|_)(?:sig|pat|pass)$|_pwd$",
    re.IGNORECASE,
)
#: The password in an address.
_PASSWORD = re.compile(r"://[^/@\s:]*:([^/@\s]+)@")


class Redaction:
    """Replaces secrets in JSON wherever they stand as they were sent.

    It helps against accidents. A server that wants to give a token away can write it in other ways.
    """

    def __init__(self) -> None:
        #: The longest first: one may be part of another.
        self._secrets = list[str]()

    def add(self, headers: Mapping[str, str]) -> None:
        """Add the headers that are secrets by their names; others name workspaces or versions."""
        for name, value in headers.items():
            if is_secret_name(name):
                # Of `Bearer abc` also what follows the scheme.
                self._keep([value, value.partition(" ")[2].strip()])

    def add_variables(self, environment: Mapping[str, str]) -> None:
        """Add the variables that are secrets by their names, and addresses with a password."""
        for name, value in environment.items():
            passwords = _PASSWORD.findall(value)
            if passwords or _SECRET_VARIABLE.search(name):
                self._keep([value, *passwords])

    def _keep(self, secrets: Iterable[str]) -> None:
        known = {*self._secrets, *(each for each in secrets if len(each) >= MIN_SECRET_CHARS)}
        self._secrets = sorted(known, key=len, reverse=True)

    def clean(self, value: Any) -> Any:
        if not self._secrets:
            return value
        match value:
            case str():
                return self._clean_text(value)
            case dict():
                return {self.clean(key): self.clean(inner) for key, inner in value.items()}
            case list():
                return [self.clean(inner) for inner in value]
            case _:
                return value

    def _clean_text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REPLACEMENT)
        return text
