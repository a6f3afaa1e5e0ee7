"""The sections of the settings and of what operators see, as the list beside them shows them."""

from collections.abc import Sequence
from dataclasses import dataclass

from backburner.web.rendering import load_words

SETTINGS = (
    *("you", "model", "allowances", "permissions", "memories", "background"),
    *("notifications", "tokens", "browsers", "data"),
)
OPERATE = ("overview", "people", "spend", "failures", "audit")


@dataclass(frozen=True, slots=True)
class SectionLink:
    name: str
    title: str
    href: str
    is_current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsPlace:
    """Where somebody is in the settings, and where else they can go."""

    name: str
    title: str
    #: The address without a section: on a phone, only the list.
    is_root: bool
    settings: Sequence[SectionLink]
    #: Empty: they do not operate this server.
    operate: Sequence[SectionLink]


def show_place(name: str, *, is_operator: bool, is_root: bool = False) -> SettingsPlace:
    words = load_words()
    titles = {one: words.settings.section[one] for one in SETTINGS}
    titles |= {one: words.operate.section[one] for one in OPERATE}

    def make(one: str, folder: str) -> SectionLink:
        return SectionLink(one, titles[one], f"/{folder}/{one}", one == name)

    return SettingsPlace(
        name=name,
        title=titles[name],
        is_root=is_root,
        settings=[make(one, "settings") for one in SETTINGS],
        operate=[make(one, "operate") for one in OPERATE] if is_operator else [],
    )
