"""The second line of defence: what is not listed here does not reach the page."""

from functools import cache

from nh3 import Cleaner

_TAGS = set(
    "a bdi blockquote br button code div em figcaption figure h3 h4 h5 h6 hr input li ol p pre s"
    " span strong table tbody td th thead tr ul".split()
)
_ATTRIBUTES = {
    "a": {"href"},
    "button": {"data-copy"},
    "figure": {"data-language"},
    "input": {"checked", "disabled"},
    "ol": {"start"},
}
_VALUES = {
    "button": {"type": {"button"}},
    "input": {"aria-label": {"Done", "To do"}, "type": {"checkbox"}},
    "th": {"scope": {"col"}},
}
_CLASSES = {
    "bdi": {"host"},
    "button": {"copy"},
    "code": {"math"},
    "div": {"table"},
    "figure": {"code"},
    "li": {"task"},
    "pre": {"math", "plain"},
    "span": {"char", "comment", "keyword", "language", "literal"},
    "td": {"left", "center", "right"},
    "th": {"left", "center", "right"},
}
#: Set on every one, whatever it says: a field that is not listed above cannot be filled in.
#: What is wider than the page scrolls, also by keyboard: code and tables.
_SET = {
    "a": {"target": "_blank"},
    "button": {"type": "button"},
    "div": {"tabindex": "0"},
    "input": {"disabled": ""},
    "pre": {"tabindex": "0"},
}


def clean(html: str) -> str:
    return _cleaner().clean(html)


@cache
def _cleaner() -> Cleaner:
    return Cleaner(
        tags=_TAGS,
        clean_content_tags={"script", "style"},
        attributes=_ATTRIBUTES,
        tag_attribute_values=_VALUES,
        set_tag_attribute_values=_SET,
        allowed_classes=_CLASSES,
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",
        link_rel="noopener noreferrer nofollow",
    )
