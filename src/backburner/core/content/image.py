"""Raster images, known by their bytes; whoever sends them may claim anything.

Nothing is decompressed here: a small image may unpack to gigabytes.
"""

import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass

PNG, JPEG, GIF, WEBP = "image/png", "image/jpeg", "image/gif", "image/webp"
#: The only types that we name to browsers. SVG is not one: it can contain scripts.
RASTER_TYPES = (PNG, JPEG, GIF, WEBP)
#: What models accept: more makes them refuse the whole request, and every later one of the session.
MAX_SHOWN_BYTES = 3_750_000
MAX_SHOWN_PIXELS = 8000

_PNG_START = b"\x89PNG\r\n\x1a\n"
#: Markers of JPEG without a length, and those that begin a frame, with its size.
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})
_FRAME_MARKERS = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
#: Before the frame; real images have a few dozen.
_MAX_SEGMENTS = 10_000


@dataclass(frozen=True, slots=True)
class ImageSize:
    width: int
    height: int


def sniff(data: bytes) -> str | None:
    """Return the media type of a raster image by its first bytes; None: it is none."""
    if data.startswith(_PNG_START):
        return PNG
    if data.startswith(b"\xff\xd8\xff"):
        return JPEG
    if data.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return WEBP
    return None


def may_be_shown(data: bytes) -> bool:
    """Check that a model can be given an image: it is whole, and not too large."""
    size = read_size(data) if len(data) <= MAX_SHOWN_BYTES else None
    return size is not None and all(
        0 < side <= MAX_SHOWN_PIXELS for side in (size.width, size.height)
    )


def read_size(data: bytes) -> ImageSize | None:
    """Read the size of an image from its header; None: it is no image, or was cut."""
    kind = sniff(data)
    return None if kind is None else _READERS[kind](data)


def _read_png(data: bytes) -> ImageSize | None:
    size, position, has_data = None, len(_PNG_START), False
    while position + 12 <= len(data):
        length = int.from_bytes(data[position : position + 4])
        end = position + 8 + length
        kind = data[position + 4 : position + 8]
        # Decoders ignore others that are damaged, such as colour profiles.
        is_critical = kind[:1].isupper()
        if is_critical and data[end : end + 4] != _checksum(data[position + 4 : end]):
            return None
        if size is None:
            if kind != b"IHDR":
                return None
            size = ImageSize(
                int.from_bytes(data[position + 8 : position + 12]),
                int.from_bytes(data[position + 12 : position + 16]),
            )
        has_data = has_data or kind == b"IDAT"
        if kind == b"IEND":
            return size if has_data else None
        position = end + 4
    return None


def _checksum(data: bytes) -> bytes:
    return binascii.crc32(data).to_bytes(4)


def _read_jpeg(data: bytes) -> ImageSize | None:
    # Cameras add data after the end. An end in the first half is that of a preview.
    if data.rfind(b"\xff\xd9") < len(data) // 2:
        return None
    position = 2
    for _ in range(_MAX_SEGMENTS):
        if position + 9 > len(data) or data[position] != 0xFF:
            return None
        marker = data[position + 1]
        if marker in _FRAME_MARKERS:
            return ImageSize(
                int.from_bytes(data[position + 7 : position + 9]),
                int.from_bytes(data[position + 5 : position + 7]),
            )
        is_bare = marker in _BARE_MARKERS
        # Bytes of 0xff may stand before a marker.
        if marker == 0xFF:
            position += 1
        else:
            position += 2 if is_bare else 2 + int.from_bytes(data[position + 2 : position + 4])
    return None


def _read_gif(data: bytes) -> ImageSize | None:
    if len(data) < 14 or not data.rstrip(b"\0").endswith(b";"):
        return None
    return ImageSize(int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little"))


def _read_webp(data: bytes) -> ImageSize | None:
    if len(data) < 30 or int.from_bytes(data[4:8], "little") > len(data) - 8:
        return None
    match data[12:16]:
        case b"VP8X":
            return ImageSize(
                int.from_bytes(data[24:27], "little") + 1,
                int.from_bytes(data[27:30], "little") + 1,
            )
        case b"VP8L" if data[20] == 0x2F:
            bits = int.from_bytes(data[21:25], "little")
            return ImageSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            return ImageSize(
                int.from_bytes(data[26:28], "little") & 0x3FFF,
                int.from_bytes(data[28:30], "little") & 0x3FFF,
            )
        case _:
            return None


_READERS: Mapping[str, Callable[[bytes], ImageSize | None]] = {
    PNG: _read_png,
    JPEG: _read_jpeg,
    GIF: _read_gif,
    WEBP: _read_webp,
}
