"""Small images of every kind, and ones that only claim to be images."""

import binascii
import zlib
from base64 import b64decode


def png(width: int = 2, height: int = 2, *, noise: bytes = b"") -> bytes:
    """Make a whole PNG; `noise` makes its bytes different, and more."""
    header = width.to_bytes(4) + height.to_bytes(4) + b"\x08\x00\x00\x00\x00"
    rows = zlib.compress(b"".join(b"\0" + bytes(width) for _ in range(min(height, 64))))
    chunks = [(b"IHDR", header), (b"IDAT", rows), (b"IEND", b"")]
    if noise:
        chunks.insert(1, (b"tEXt", b"Comment\0" + noise))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4) + kind + data + binascii.crc32(kind + data).to_bytes(4)


GIF = b64decode("R0lGODlhAQACAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAIAAAIDRAIFADs=")
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    b"\xff\xff\xfe\x00\x04hi\xff\xc0\x00\x0b\x08\x00\x03\x00\x04\x01\x01\x11\x00\xff\xd9"
)
_LOSSLESS = (5 - 1) | (6 - 1) << 14
WEBP_LOSSLESS = b"RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f" + _LOSSLESS.to_bytes(
    4, "little"
)
WEBP_LOSSLESS += bytes(34 - len(WEBP_LOSSLESS))
WEBP_LOSSY = b"RIFF\x1a\x00\x00\x00WEBPVP8 \x0d\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x07\x00\x08\x00"
WEBP_LOSSY += bytes(34 - len(WEBP_LOSSY))
WEBP_EXTENDED = (
    b"RIFF\x1a\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x09\x00\x00"
)
WEBP_EXTENDED += bytes(34 - len(WEBP_EXTENDED))
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
HTML = b"<!doctype html><script>alert(1)</script>"
