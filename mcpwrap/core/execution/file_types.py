"""Types of files that a run left: by name, and for images by their first bytes.

Sizes of images are read from their headers alone; nothing is decoded. Sources: PNG (ISO 15948)
section 11.2.2, GIF89a section 18, JPEG (ITU T.81) annex B, WebP container (RFC 9649) section 2.
"""

import struct
from dataclasses import dataclass

PLAIN, BINARY = "text/plain", "application/octet-stream"
_TYPE_BY_SUFFIX = {
    "csv": "text/csv", "tsv": "text/tab-separated-values", "txt": PLAIN, "log": PLAIN,
    "md": "text/markdown", "html": "text/html", "css": "text/css", "py": "text/x-python",
    "json": "application/json", "ndjson": "application/x-ndjson", "xml": "application/xml",
    "yaml": "application/yaml", "yml": "application/yaml", "toml": "application/toml",
    "svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg",
    "gif": "image/gif", "webp": "image/webp", "pdf": "application/pdf", "zip": "application/zip",
    "gz": "application/gzip", "wav": "audio/wav", "mp3": "audio/mpeg", "mp4": "video/mp4",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "parquet": "application/vnd.apache.parquet", "sqlite": "application/vnd.sqlite3",
}  # fmt: skip
_TEXT_TYPES = frozenset(
    {
        "application/json", "application/x-ndjson", "application/xml", "application/yaml",
        "application/toml", "image/svg+xml",
    }
)  # fmt: skip
_HEADER_BYTES = 256 * 1024  # in which the size of a JPEG must be, after its metadata
_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8"
# Frame headers of T.81 table B.1: all SOFn, but not DHT, JPG and DAC, whose codes are among them.
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = frozenset({0x01, 0xFF, *range(0xD0, 0xD9)})


@dataclass(frozen=True, slots=True)
class Image:
    """Image of a kind that agents show to their model."""

    mime_type: str
    width_px: int
    height_px: int

    @property
    def longest_side_px(self) -> int:
        """Return the longer one of width and height."""
        return max(self.width_px, self.height_px)


def mime_type(name: str, content: bytes = b"") -> str:
    """Return the MIME type: of an image by its content, else by the suffix of the name."""
    if image := image_in(content):
        return image.mime_type
    return _TYPE_BY_SUFFIX.get(name.rpartition(".")[2].lower(), BINARY)


def text_of(kind: str, content: bytes) -> str | None:
    """Return the content as text if it is of a type of text and valid UTF-8, else None."""
    if not kind.startswith("text/") and kind not in _TEXT_TYPES:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def image_in(content: bytes) -> Image | None:
    """Return the image that begins with these bytes; None for everything else."""
    head = content[:_HEADER_BYTES]
    try:
        found = _png(head) or _gif(head) or _webp(head) or _jpeg(head)
    except (struct.error, IndexError):  # it is cut off
        return None
    return found if found and found.width_px and found.height_px else None


def _png(content: bytes) -> Image | None:
    if not content.startswith(_PNG) or content[12:16] != b"IHDR":
        return None
    return Image("image/png", *struct.unpack_from(">II", content, 16))


def _gif(content: bytes) -> Image | None:
    if not content.startswith((b"GIF87a", b"GIF89a")):
        return None
    return Image("image/gif", *struct.unpack_from("<HH", content, 6))


def _webp(content: bytes) -> Image | None:
    if not content.startswith(b"RIFF") or content[8:12] != b"WEBP":
        return None
    kind = content[12:16]
    if kind == b"VP8 ":  # RFC 6386 section 9.1: 14 bits each, after the start code
        width, height = struct.unpack_from("<HH", content, 26)
        return Image("image/webp", width & 0x3FFF, height & 0x3FFF)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", content, 21)
        return Image("image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8X":
        width, height = (int.from_bytes(content[at : at + 3], "little") + 1 for at in (24, 27))
        return Image("image/webp", width, height)
    return None


def _jpeg(content: bytes) -> Image | None:
    if not content.startswith(_JPEG):
        return None
    at = 2
    while content[at] == 0xFF:
        marker = content[at + 1]
        if marker in _WITHOUT_LENGTH:
            at += 1 if marker == 0xFF else 2  # 0xFF may fill the space before a marker
            continue
        (length,) = struct.unpack_from(">H", content, at + 2)
        if marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", content, at + 5)
            return Image("image/jpeg", width, height)
        if length < 2:
            return None
        at += 2 + length
    return None
