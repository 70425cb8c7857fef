"""Types of files, and the sizes of images by their headers."""

import struct

import pytest

from mcpwrap.core.execution import file_types
from mcpwrap.core.execution.file_types import Image

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"\x08\x06"
GIF = b"GIF89a" + struct.pack("<HH", 3, 2)
APP0 = b"\xff\xe0" + struct.pack(">H", 4) + b"JF"
JPEG = b"\xff\xd8" + APP0 + b"\xff\xc2" + struct.pack(">HBHH", 17, 8, 480, 640)
RIFF = b"RIFF\0\0\0\0WEBP"
LOSSY = RIFF + b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640 | 0x4000, 480)
LOSSLESS = RIFF + b"VP8L\0\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14)
EXTENDED = RIFF + b"VP8X\0\0\0\0\0\0\0\0" + b"\x7f\x02\0" + b"\xdf\x01\0"


@pytest.mark.parametrize(
    ("content", "image"),
    [
        (PNG, Image("image/png", 640, 480)),
        (GIF, Image("image/gif", 3, 2)),
        (b"GIF87a" + GIF[6:], Image("image/gif", 3, 2)),
        (JPEG, Image("image/jpeg", 640, 480)),
        (b"\xff\xd8\xff" + JPEG[2:], Image("image/jpeg", 640, 480)),  # a byte that fills
        (b"\xff\xd8\xff\x01" + JPEG[2:], Image("image/jpeg", 640, 480)),  # a marker alone
        (LOSSY, Image("image/webp", 640, 480)),
        (LOSSLESS, Image("image/webp", 640, 480)),
        (EXTENDED, Image("image/webp", 640, 480)),
        (b"", None),
        (b"text", None),
        (PNG[:20], None),
        (PNG.replace(b"IHDR", b"IDAT"), None),
        (PNG.replace(struct.pack(">I", 640), bytes(4)), None),  # without width
        (GIF[:8], None),
        (JPEG[:-2], None),
        (b"\xff\xd8\xff", None),
        (b"\xff\xd8\xff\xe0\0\1", None),  # a length that is less than its own
        (b"\xff\xd8\0\0", None),
        (b"\xff\xd8\xff\xc4\0\2\xff\xda\0\2xx", None),  # tables and data, without a frame
        (LOSSY[:20], None),
        (RIFF + b"ALPH", None),
        (b"RIFF\0\0\0\0WAVE", None),
    ],
)
def test_an_image_is_known_by_its_header(content: bytes, image: Image | None) -> None:
    assert file_types.image_in(content) == image


def test_the_longest_side() -> None:
    assert Image("image/png", 640, 480).longest_side_px == 640
    assert Image("image/png", 3, 480).longest_side_px == 480


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.csv", b"", "text/csv"), ("A.CSV", b"", "text/csv"),
        ("a.tar.gz", b"", "application/gzip"), ("a", b"", "application/octet-stream"),
        ("a.", b"", "application/octet-stream"),
        ("a.exe", b"", "application/octet-stream"), ("plot", PNG, "image/png"),
        ("a.png", b"", "image/png"), ("a.txt", GIF, "image/gif"),
    ],
)  # fmt: skip
def test_a_type_is_by_content_or_name(name: str, content: bytes, kind: str) -> None:
    assert file_types.mime_type(name, content) == kind


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        ("text/csv", "é".encode(), "é"), ("application/json", b"{}", "{}"),
        ("image/svg+xml", b"<svg/>", "<svg/>"), ("text/plain", b"\xff", None),
        ("text/plain", b"a\0b", None), ("application/zip", b"PK", None), ("image/png", b"x", None),
    ],
)  # fmt: skip
def test_text_is_utf_8_of_a_type_of_text(kind: str, content: bytes, text: str | None) -> None:
    assert file_types.text_of(kind, content) == text
