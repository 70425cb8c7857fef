"""Taking secrets out of what a server writes, however the stream is cut."""

import base64
import re
from collections.abc import Iterator, Mapping

# Shorter values stand in ordinary text by chance: without every "1234" a message is another one.
MIN_SECRET_BYTES = 8
# The same for one line of a longer value, which is more often a phrase: `"type": "object",`.
MIN_LINE_CHARS = 20
# RFC 8259 section 7. By hand, here and for URLs: root asks `is_redactable`, and may not import
# what reads JSON or fetches pages.
_JSON_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in range(0x20)},
    **str.maketrans({'"': r"\"", "\\": r"\\"}),
    **str.maketrans({"\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}),
}
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")  # DEL too: json.dumps() writes it as an escape
# What more is escaped by encoding/json of Go, by Gson of Java, and by System.Text.Json of .NET.
_GO_ESCAPES = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&"})
_GSON_ESCAPES = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&='"})
_DOTNET_ESCAPES = {
    **_JSON_ESCAPES,
    **str.maketrans({char: f"\\u{ord(char):04X}" for char in "\"<>&+'`"}),
}
# What is percent-encoded by whoever knows RFC 3986 section 2.3, by quote() of Python unless told,
# and by encodeURIComponent().
_NOT_IN_URL = [re.compile(rf"[^A-Za-z0-9_.~{also}-]".encode()) for also in ("", "/", "!'()*")]
_HEAD_BYTES = 8  # no form is shorter
_WORD_BYTES = 4  # of a machine word, type "I" of a memoryview


def is_redactable(value: str) -> bool:
    """Say whether a secret is looked for: it is long enough, and no mere number.

    The space around it does not count. A number may stand in a message as one, without quotes, and
    there a marker would leave no JSON.
    """
    bare = value.strip()
    return len(bare.encode()) >= MIN_SECRET_BYTES and not bare.isdecimal()


class Redactor:
    """Takes a stream of bytes in pieces and writes `[redacted KEY]` where a secret stood.

    Guards against accident: a debug log, an error that quotes its request, a dump of variables. A
    server that wants to give a secret away can, by reversing it; what holds that one is that it
    reaches nobody who is not on its allowlist.

    Found are the plain value, the value in JSON and in JSON within JSON, in base64, hexadecimal
    and URLs. Of a value of several lines also each line of at least `MIN_LINE_CHARS`; with raw
    newlines it is found by those lines alone. A value of under `MIN_SECRET_BYTES` is left alone:
    see `is_redactable`.
    """

    def __init__(self, value_by_key: Mapping[str, str]) -> None:
        self._marker_by_form: dict[bytes, bytes] = {}
        for key, value in value_by_key.items():
            for form in _forms_of_value(value):
                self._marker_by_form.setdefault(form, f"[redacted {key}]".encode())
        self._longest_bytes = max(map(len, self._marker_by_form), default=0)
        sizes = range(1, _HEAD_BYTES + 1)
        self._heads = {form[:size] for form in self._marker_by_form for size in sizes}
        self._words = {word for form in self._marker_by_form for word in _words_within(form)}
        self._held = b""
        self._replaced_bytes = 0  # of what is held, those that a marker already stands for

    def feed(self, chunk: bytes) -> bytes:
        """Return what can be passed on now: all whole lines, and of the last what is decided.

        Held back are fewer bytes than the longest form has, however long the line.
        """
        if not self._marker_by_form:
            return chunk
        text = self._held + chunk
        return self._pass_on(text, self._undecided_from(text))

    def rest(self) -> bytes:
        """Return what was held back, once the stream has ended."""
        return self._pass_on(self._held, len(self._held))

    def _pass_on(self, text: bytes, end: int) -> bytes:
        """Return `text` up to `end` without secrets, and hold the rest.

        Secrets that overlap get one marker: a marker each would leave the tail of one to be read.
        """
        parts = []
        done = self._replaced_bytes
        for start, stop, marker in self._found(text):
            if start >= end:
                break
            if start >= done:
                parts += [text[done:start], marker]
            done = max(done, stop)
        self._held = text[end:]
        self._replaced_bytes = max(0, done - end)
        return b"".join([*parts, text[done:end]])

    def _found(self, text: bytes) -> list[tuple[int, int, bytes]]:
        """Return start, end and marker of each occurrence, the longest first where they start."""
        whole_words = memoryview(text)[: len(text) // _WORD_BYTES * _WORD_BYTES]
        if self._words.isdisjoint(whole_words.cast("I")):
            return []
        found = []
        for form in [form for form in self._marker_by_form if form in text]:
            at = text.find(form)
            while at >= 0:
                found.append((at, at + len(form), self._marker_by_form[form]))
                at = text.find(form, at + 1)
        return sorted(found, key=lambda f: (f[0], -f[1]))

    def _undecided_from(self, text: bytes) -> int:
        """Return where a form starts that `text` cuts off. No form has a newline in it."""
        first = max(text.rfind(b"\n") + 1, len(text) - self._longest_bytes + 1)
        for at in range(first, len(text)):
            if text[at : at + _HEAD_BYTES] in self._heads:
                tail = text[at:]
                if any(form.startswith(tail) and form != tail for form in self._marker_by_form):
                    return at
        return len(text)


def _words_within(form: bytes) -> Iterator[int]:
    """Yield four words, one of which an array of words has wherever in it the form begins.

    Looking for some numbers takes a tenth of the time of looking for a hundred forms. They are
    from the middle, since values of one kind begin alike.
    """
    first = (len(form) - 2 * _WORD_BYTES + 1) // 2
    for at in range(first, first + _WORD_BYTES):
        yield memoryview(form)[at : at + _WORD_BYTES].cast("I")[0]


def _forms_of_value(value: str) -> Iterator[bytes]:
    """Yield all that is looked for, once or more often."""
    if not is_redactable(value):
        return
    # Without the newline that `echo` puts at the end: what is around a value hides nothing.
    whole = value.strip()
    lines = [line.strip() for line in whole.split("\n")]
    for text in (whole, *(line for line in lines if len(line) >= MIN_LINE_CHARS)):
        yield from (form.encode() for form in _forms(text) if "\n" not in form)


def _forms(text: str) -> set[str]:
    once = _json_escaped(text)
    twice = {form for escaped in once for form in _json_escaped(escaped)}
    raw = text.encode()
    return {text, *once, *twice, *_base64(raw), raw.hex(), raw.hex().upper(), *_in_url(raw)}


def _json_escaped(text: str) -> set[str]:
    usual = text.translate(_JSON_ESCAPES)
    lower = {usual, usual.translate(_GO_ESCAPES), usual.translate(_GSON_ESCAPES)}
    lower |= {_NOT_ASCII.sub(_utf16_escape, form) for form in lower}
    upper = _NOT_ASCII.sub(_utf16_escape_upper, text.translate(_DOTNET_ESCAPES))
    return _with_slashes_escaped({*lower, upper})


def _utf16_escape(char: re.Match[str]) -> str:
    return re.sub("....", r"\\u\g<0>", char[0].encode("utf-16-be").hex())


def _utf16_escape_upper(char: re.Match[str]) -> str:
    return re.sub("....", r"\\u\g<0>", char[0].encode("utf-16-be").hex().upper())


def _with_slashes_escaped(forms: set[str]) -> set[str]:
    r"""Return the forms, each also with `\/`, as json_encode() of PHP writes it."""
    return forms | {form.replace("/", r"\/") for form in forms}


def _base64(raw: bytes) -> set[str]:
    """Return what base64 of any text with `raw` in it has, after 0, 1 or 2 bytes modulo 3.

    Characters that hold bits of what is before or after are left out. Of `MIN_SECRET_BYTES` ten
    characters remain, so none of these is a word.
    """
    standard = set()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode()
        bits = 8 * (before + len(raw))
        standard.add(encoded[-(-8 * before // 6) : bits // 6])
    url_safe = {form.replace("+", "-").replace("/", "_") for form in standard}
    return _with_slashes_escaped(standard) | url_safe


def _in_url(raw: bytes) -> set[str]:
    encoded = [
        other.sub(lambda byte: b"%%%02X" % ord(byte[0]), raw).decode() for other in _NOT_IN_URL
    ]
    upper = {*encoded, *(form.replace("%20", "+") for form in encoded)}
    return upper | {re.sub("%..", lambda digits: digits[0].lower(), form) for form in upper}
