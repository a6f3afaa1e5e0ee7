"""Images are known by their bytes, and read no further than their headers."""

import pytest
from support.cases import images
from support.cases.images import GIF, JPEG, WEBP_EXTENDED, WEBP_LOSSLESS, WEBP_LOSSY, png

from backburner.core.content.image import (
    MAX_SHOWN_BYTES,
    MAX_SHOWN_PIXELS,
    ImageSize,
    may_be_shown,
    read_size,
    sniff,
)

WHOLE = {
    "png": (png(2, 9), "image/png", ImageSize(2, 9)),
    "gif": (GIF, "image/gif", ImageSize(1, 2)),
    "jpeg": (JPEG, "image/jpeg", ImageSize(4, 3)),
    "webp, lossless": (WEBP_LOSSLESS, "image/webp", ImageSize(5, 6)),
    "webp, lossy": (WEBP_LOSSY, "image/webp", ImageSize(7, 8)),
    "webp, extended": (WEBP_EXTENDED, "image/webp", ImageSize(9, 10)),
}


@pytest.mark.parametrize(("data", "media_type", "size"), WHOLE.values(), ids=WHOLE)
def test_an_image_is_known_by_its_bytes(data: bytes, media_type: str, size: ImageSize) -> None:
    assert sniff(data) == media_type
    assert read_size(data) == size
    assert may_be_shown(data)


@pytest.mark.parametrize("data", [images.SVG, images.HTML, b"", b"GIF88a", b"RIFF1234WAVE"])
def test_anything_else_is_no_image(data: bytes) -> None:
    assert sniff(data) is None
    assert read_size(data) is None
    assert not may_be_shown(data)


@pytest.mark.parametrize("name", WHOLE)
def test_a_cut_image_is_not_shown(name: str) -> None:
    data = WHOLE[name][0]

    assert not may_be_shown(data[:-8])


def test_a_damaged_part_that_decoders_ignore_is_no_damage() -> None:
    data = png(noise=b"a comment").replace(b"a comment", b"a c0mment")

    assert read_size(data) == ImageSize(2, 2)
    assert may_be_shown(data)


def test_a_photo_may_have_data_after_its_end() -> None:
    assert may_be_shown(JPEG + bytes(len(JPEG) - 10))
    assert not may_be_shown(JPEG + bytes(10 * len(JPEG)))


DAMAGED = {
    "a changed byte": png().replace(b"IDAT", b"IDAX"),
    "no header": png()[:8] + png()[33:],
    "no pixels": png().replace(png()[33:-12], b""),
    "a bad checksum": png()[:29] + b"\0\0\0\0" + png()[33:],
    "a JPEG without a frame": b"\xff\xd8\xff\xd0\xff\xd1\xff\xda\x00\x02\x00\xff\xd9\0\0\0\0\0",
    "a JPEG of padding": b"\xff\xd8" + b"\xff" * 20_000 + b"\xff\xd9",
    "a JPEG of nothing": b"\xff\xd8\xff\xd9",
    "a WebP of another kind": WEBP_EXTENDED.replace(b"VP8X", b"ANIM"),
    "a WebP with a bad start": WEBP_LOSSY.replace(b"\x9d\x01\x2a", b"\0\0\0"),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_image_is_not_shown(data: bytes) -> None:
    assert not may_be_shown(data)


@pytest.mark.parametrize(
    ("width", "height", "shown"),
    [
        (MAX_SHOWN_PIXELS, 1, True),
        (MAX_SHOWN_PIXELS + 1, 1, False),
        (1, 2**31 - 1, False),
        (0, 1, False),
    ],
)
def test_an_image_of_too_many_pixels_is_not_shown(width: int, height: int, *, shown: bool) -> None:
    assert may_be_shown(png(width, height)) == shown


def test_an_image_of_too_many_bytes_is_not_shown() -> None:
    assert not may_be_shown(png(noise=bytes(MAX_SHOWN_BYTES)))
