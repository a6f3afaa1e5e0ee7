"""Colours of the page can be told apart on every surface they stand on, in light and dark."""

import re
from importlib.resources import files

import pytest

SURFACES = ("bg", "side", "raised", "sunk", "hover", "chosen")
TINTS = ("ember-bg", "pilot-bg", "bad-bg")
TEXTS = ("ink", "ink-2", "ink-3")
#: Small text, and what it stands on.
READ = [
    *((text, surface) for text in (*TEXTS, "ember", "pilot") for surface in SURFACES),
    *((text, surface) for text in ("ok", "bad", "warn") for surface in SURFACES),
    *((text, tint) for text in TEXTS for tint in TINTS),
    *((tint.removesuffix("-bg"), tint) for tint in TINTS),
    ("ink-on", "ink"),
    ("ember-on", "ember"),
]
#: What is seen and not read: edges of fields, bars, rings, the sign of the focus.
SEEN = [
    *((shape, surface) for shape in ("field", "pilot", "ember") for surface in ("bg", "raised")),
    *((shape, "bg") for shape in ("ok-fill", "bar")),
    *(("mark-disc", "mark-tile"), ("mark-ring", "mark-tile")),
]
TOKEN = re.compile(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);")


def load_colours() -> dict[str, tuple[str, str]]:
    style = files("backburner.web").joinpath("css", "00-tokens.css").read_text()
    return {name: (light, dark) for name, light, dark in TOKEN.findall(style)}


COLOURS = load_colours()


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_measured_as_the_guidelines_say() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read_on_every_surface(theme: int) -> None:
    found = {pair: contrast(*(COLOURS[name][theme] for name in pair)) for pair in READ}

    assert {pair: ratio for pair, ratio in found.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_shapes_can_be_seen(theme: int) -> None:
    found = {pair: contrast(*(COLOURS[name][theme] for name in pair)) for pair in SEEN}

    assert {pair: ratio for pair, ratio in found.items() if ratio < 3} == {}
