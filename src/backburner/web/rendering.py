"""Fragments of the page: templates, with the texts of `words/` and times in the user's zone.

Everything is escaped unless `markdown` has rendered and cleaned it. A fragment is rendered in a
thread, because a long conversation takes seconds. Views that grow with what others have written
are built there too: `respond` is given functions for them.
"""

import asyncio
import gzip
import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from backburner.web.assets import version
from backburner.web.display import Display
from backburner.web.off_loop import run_off_loop

LANGUAGE = "en"
#: Fragments belong to one user, and change with every event.
#: Smaller ones are not worth the time; a higher level takes twice as long for a tenth less.
MIN_COMPRESSED_BYTES, GZIP_LEVEL = 1_000, 5
#: Tells a page from before an update that its scripts and styles are.
VERSION_HEADER = "x-backburner-version"
#: The newest change that a fragment certainly shows.
CHANGE_HEADER = "x-backburner-change"
HEADERS = {"cache-control": "no-store", "x-robots-tag": "noindex"}


class Words:
    """Texts by name: `words.chat.placeholder`. Names of its own begin with an underscore."""

    def __init__(self, texts: Mapping[str, Any]) -> None:
        self._texts = texts

    def __getitem__(self, name: str) -> Any:
        found = self._texts[name]
        return Words(found) if isinstance(found, dict) else found

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __contains__(self, name: str) -> bool:
        return name in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)


@cache
def load_words() -> Words:
    folder = files(__package__).joinpath("words", LANGUAGE)
    return Words(
        {
            file.name.removesuffix(".toml"): tomllib.loads(file.read_text(encoding="utf-8"))
            for file in folder.iterdir()
            if file.name.endswith(".toml")
        }
    )


def fill(text: str, /, **values: Any) -> str:
    """Put values into a text: `{time}`."""
    return text.format(**values)


def count(forms: Words, number: int, /, **values: Any) -> str:
    """Choose the form of a text for a number: `none` if there is one, `one`, or `other`."""
    form = "none" if number == 0 and "none" in forms else "one" if number == 1 else "other"
    text: str = forms[form].format(number=number, **values)
    return text


def to_attribute(value: Any) -> str:
    """Write a value as JSON, for an attribute that a script reads."""
    return json.dumps(value, separators=(",", ":"))


def to_id(text: str) -> str:
    """Make a part of an element's id of a name, which may contain anything."""
    return sha256(text.encode(errors="replace")).hexdigest()[:12]


def capitalize_first(text: str) -> str:
    """Begin a text with a capital, and leave the rest as it is."""
    return text[:1].upper() + text[1:]


def emphasize(text: str, /, **values: str) -> Markup:
    """Escape a text of ours with `**bold**` parts, and put escaped values into it."""
    escaped = Markup.escape(text)
    parts = str(escaped).split("**")
    bold = [f"<b>{part}</b>" if number % 2 else part for number, part in enumerate(parts)]
    filled = {name: Markup.escape(value) for name, value in values.items()}
    return Markup("".join(bold)).format(**filled)  # noqa: S704 (escaped above)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("backburner.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        fill=fill,
        count=count,
        json=to_attribute,
        bold=emphasize,
        hash=to_id,
        capitalize_first=capitalize_first,
    )
    environment.globals["words"] = load_words()
    return environment


def render(template: str, display: Display, **values: Any) -> str:
    return _environment().get_template(template).render(display=display, **values)


def render_static(template: str, **values: Any) -> str:
    """Render what shows nothing of any user."""
    return _environment().get_template(template).render(**values)


class Fragment(HTMLResponse):
    """A page or a part of one, compressed in a thread for who takes that."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        accepted = Headers(scope=scope).get("accept-encoding", "")
        if "gzip" in accepted and len(self.body) > MIN_COMPRESSED_BYTES:
            self.body = await asyncio.to_thread(gzip.compress, self.body, GZIP_LEVEL, mtime=0)
            self.headers["content-length"] = str(len(self.body))
            self.headers["content-encoding"] = "gzip"
        self.headers["vary"] = "accept-encoding"
        self.headers.update(scope.get("state", {}).get("fragment_headers", {}))
        await super().__call__(scope, receive, send)


async def respond(template: str, display: Display, *, status: int = 200, **values: Any) -> Response:
    """Render a fragment without holding up other requests; functions among its values return them.

    What may take long refuses to run anywhere else.
    """
    text = await run_off_loop(partial(_call_and_render, template, display, values))
    return Fragment(text, status_code=status, headers={**HEADERS, VERSION_HEADER: version()})


def _call_and_render(template: str, display: Display, values: Mapping[str, Any]) -> str:
    called = {name: value() if callable(value) else value for name, value in values.items()}
    return render(template, display, **called)
