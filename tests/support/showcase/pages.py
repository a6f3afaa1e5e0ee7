"""All pages that are looked at, by the names of their pictures: a page that is added is added here.

A page that this checkout does not have yet is left out by itself: its address has no fragment.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from backburner.web.page_routes import ROUTERS


@dataclass(frozen=True, slots=True)
class Look:
    """A page, and what is done before it is looked at."""

    name: str
    #: `{builds}` is the id of a conversation of the stories.
    path: str
    #: Pressed one after the other, by their selectors.
    presses: tuple[str, ...] = ()
    #: By selector, typed at the end.
    types: tuple[str, str] | None = None
    #: The page of somebody who has nothing yet, or of nobody.
    who: str = "nora"
    #: The server has vanished.
    cut_off: bool = False


SETTINGS = (
    *("you", "model", "notifications", "allowances", "memories", "permissions", "background"),
    *("browsers", "tokens", "data"),
)
OPERATE = ("overview", "people", "spend", "failures", "audit")
LOOKS = (
    Look("chat", "/c/{builds}"),
    Look("chat-writing", "/c/{letter}"),
    Look("chat-background", "/c/{digest}"),
    Look("chat-working", "/c/{flats}"),
    Look("chat-failed", "/c/{backup}"),
    Look("chat-right-to-left", "/c/{trip}"),
    Look("chat-short", "/c/{kettle}", ("button.tool",)),
    Look("chat-jobs", "/c/{hosting}"),
    Look("chat-archived", "/c/{archived}"),
    Look("chat-schedule", "/c/{builds}", (".header .chip[popovertarget]",)),
    Look("chat-menu", "/c/{builds}", ("[popovertarget=menu-head]",)),
    Look("chat-commands", "/c/{builds}", types=("#composer", "/")),
    Look("question-choice", "/c/{choice}"),
    Look("question-input", "/c/{input}"),
    Look("question-approval-always", "/c/{lasting}", (".question .answers button >> nth=1",)),
    Look("question-form", "/c/{elicitation}"),
    Look("question-later", "/c/{confirmation}", (".question .quiet",)),
    Look("list", "/"),
    Look("list-filters", "/", ("[popovertarget=filters]",)),
    Look("list-filtered", "/", ("[popovertarget=filters]", "[data-state-filter=failed]")),
    Look("list-search", "/", types=("#search", "build")),
    Look("list-nothing-found", "/", types=("#search", "xyzzy")),
    Look("new", "/new"),
    Look("more", "/more"),
    Look("needs-you", "/needs-you"),
    Look("away", "/away"),
    Look("tasks", "/tasks"),
    Look("task-new", "/tasks/new"),
    Look("calendar", "/calendar"),
    Look("running", "/running"),
    Look("spending", "/spending"),
    Look("notices", "/notices"),
    Look("notices-tray", "/", ("#bell button:visible, #bell a:visible",)),
    Look("task", "/t/{digest}"),
    Look("task-failed", "/t/{backup}"),
    Look("run", "/r/{run:digest}"),
    Look("run-failed", "/r/{run:backup}"),
    Look("run-working", "/r/{run:flats}"),
    Look("jobs", "/jobs"),
    Look("job-tree", "/jobs/{hosting}"),
    Look("connections", "/connections"),
    Look("connection", "/connections/{connection:mail}"),
    Look("connection-signed-out", "/connections/{connection:calendar}"),
    Look("connection-tool", "/connections/{connection:mail}", (".tool-name",)),
    Look("connection-changed", "/connections/{connection:builds}"),
    Look("connection-add", "/connections/add"),
    Look("folders", "/folders"),
    Look("settings", "/settings"),
    *(Look(f"settings-{part}", f"/settings/{part}") for part in SETTINGS),
    Look("operate", "/operate"),
    *(Look(f"operate-{part}", f"/operate/{part}") for part in OPERATE),
    Look("empty-list", "/", who="tomas"),
    Look("empty-needs-you", "/needs-you", who="tomas"),
    Look("empty-away", "/away", who="tomas"),
    Look("empty-tasks", "/tasks", who="tomas"),
    Look("empty-running", "/running", who="tomas"),
    Look("empty-notices", "/notices", who="tomas"),
    Look("empty-jobs", "/jobs", who="tomas"),
    Look("empty-connections", "/connections", who="tomas"),
    Look("empty-folders", "/folders", who="tomas"),
    Look("error-not-found", "/c/c_0123456789abcdefghjkmnpqrs"),
    Look("error-question-gone", "/q/q_0123456789abcdefghjkmnpqrs"),
    Look("error-cut-off", "/c/{kettle}", cut_off=True),
    Look("keys", "/running", types=("body", "?")),
    Look("sign-in", "/sign-in", who=""),
    Look("reset", "/reset#secret", who=""),
    Look("invitation", "/invitation#secret", who=""),
)


def list_looks() -> list[Look]:
    return [look for look in LOOKS if look.who == "" or _is_built(look.path)]


def _is_built(path: str) -> bool:
    plain = re.sub(r"\{[^}]*\}", "x", path)
    return any(pattern.fullmatch(f"/page{plain}") for pattern in _patterns())


def _patterns() -> Iterator[re.Pattern[str]]:
    for router in ROUTERS:
        for route in router.routes:
            address: str = getattr(route, "path", "")
            yield re.compile(re.sub(r"\{[^}]*\}", "[^/]+", address))
