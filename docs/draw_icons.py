"""Draws the icons of the page from its mark, as PNG files in `src/backburner/web/files/`.

The mark, in a square of 22: a tile, three rings, and one disc with a halo. Run it after a change of
the mark, and commit what it draws.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot
from pathlib import Path

FILES = Path(__file__).parents[1] / "src" / "backburner" / "web" / "files"
GRID, CORNER = 22, 6
NEAR, FAR = 7, 15
TILE, RING, DISC, WHITE = (
    (0x1D, 0x21, 0x1E),
    (0x8B, 0x93, 0x8C),
    (0xFF, 0x7A, 0x3D),
    (255, 255, 255),
)
RINGS = ((NEAR, NEAR), (NEAR, FAR), (FAR, FAR))
LIT = (FAR, NEAR)
RING_RADIUS, RING_WIDTH, DISC_RADIUS, HALO_RADIUS, HALO = 2.3, 1.2, 2.8, 4.4, 0.28

Color = tuple[int, int, int]


@dataclass(frozen=True)
class Icon:
    name: str
    size: int
    #: Of the square of 22, around the centre; what is outside of it is tile.
    scale: float = 1
    #: Transparent corners.
    is_rounded: bool = False
    #: White on nothing, as the status bars of phones show it.
    is_plain: bool = False


ICONS = (
    Icon("icon-192.png", 192, is_rounded=True),
    Icon("icon-512.png", 512, is_rounded=True),
    # A platform may cut off all that is outside of a circle of four fifths.
    Icon("icon-maskable.png", 512, scale=0.72),
    Icon("apple-touch-icon.png", 180, scale=0.9),
    Icon("badge.png", 96, scale=1.35, is_plain=True),
)


def draw(icon: Icon) -> bytes:
    rows = [b"\0" + bytes(_draw_row(icon, y)) for y in range(icon.size)]
    head = struct.pack(">IIBBBBB", icon.size, icon.size, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(b"".join(rows), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_write_part(*part) for part in parts)


def _write_part(name: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)


def _draw_row(icon: Icon, row: int) -> Iterator[int]:
    unit = GRID / icon.size / icon.scale
    for column in range(icon.size):
        middle = (icon.size - 1) / 2
        x, y = ((place - middle) * unit + GRID / 2 for place in (column, row))
        color, alpha = (WHITE, 0.0) if icon.is_plain else (TILE, _tile(icon, x, y, unit))
        for top, part in _shapes(icon, x, y, unit):
            color = _mix(color, top, part)
            alpha = max(alpha, part)
        yield from (*color, round(255 * alpha))


def _shapes(icon: Icon, x: float, y: float, unit: float) -> Iterator[tuple[Color, float]]:
    """Give the colours over a point, and how much of it each covers."""
    ring, disc = (WHITE, WHITE) if icon.is_plain else (RING, DISC)
    for center in RINGS:
        distance = abs(_distance(x, y, center) - RING_RADIUS) - RING_WIDTH / 2
        yield ring, _cover(distance, unit)
    lit = _distance(x, y, LIT)
    if not icon.is_plain:
        yield disc, HALO * _cover(lit - HALO_RADIUS, unit)
    yield disc, _cover(lit - DISC_RADIUS, unit)


def _tile(icon: Icon, x: float, y: float, unit: float) -> float:
    if not icon.is_rounded:
        return 1.0
    half = GRID / 2
    across, down = (abs(place - half) - half + CORNER for place in (x, y))
    distance = hypot(max(across, 0), max(down, 0)) + min(max(across, down), 0) - CORNER
    return _cover(distance, unit)


def _distance(x: float, y: float, center: Sequence[float]) -> float:
    return hypot(x - center[0], y - center[1])


def _cover(distance: float, unit: float) -> float:
    """Say how much of a pixel is inside of a shape, by the distance to its edge."""
    return min(max(0.5 - distance / unit, 0.0), 1.0)


def _mix(below: Color, top: Color, part: float) -> Color:
    red, green, blue = (
        round(one + (other - one) * part) for one, other in zip(below, top, strict=True)
    )
    return red, green, blue


if __name__ == "__main__":
    for icon in ICONS:
        (FILES / icon.name).write_bytes(draw(icon))
