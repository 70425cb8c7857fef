"""Redaction of secrets in a server's output, however the stream is cut."""

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
# Columns at which base64 is wrapped: RFC 2045 (base64(1), encodebytes() of Python) and RFC 7468.
_COLUMNS = (76, 64)
_LINE_ENDS = ("\n", "\r\n", r"\n", r"\r\n")  # as such, and in JSON
_MAX_WRAPPED_BYTES = 4096  # of a value: 1680 forms, each as long as all of it
_LEAST_DIGITS = 9  # of base64 that is looked for, so that none is a word
# Digits before a line end that stay: two bytes. A line that ends in these alone is not held back.
_MAX_LEFT_OUT = 3
_LINE_END_OF_BASE64 = re.compile(rb"[A-Za-z0-9+/]\r?\n\Z")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_HEAD_BYTES = 8  # no form is shorter
_WORD_BYTES = 4  # of a machine word, type "I" of a memoryview
_MAX_STRIDE = 4  # words
_LESS_THAN_A_LINE = 24  # between two parts: no line end is in both


def is_redactable(value: str) -> bool:
    """Say whether a secret is looked for: it is long enough, and no mere number.

    The space around it does not count. A number may stand in a message as one, without quotes, and
    there a marker would leave no JSON. One with an exponent counts as a token of hexadecimal.
    """
    bare = value.strip()
    return len(bare.encode()) >= MIN_SECRET_BYTES and not _NUMBER.fullmatch(bare)


class Redactor:
    """Stream filter that writes `[redacted KEY]` in the place of a secret.

    It guards against accident: a debug log, an error that quotes its request, a dump of variables.
    A server that wants to leak a secret can, by reversing it; against that, the server reaches only
    the hosts on its allowlist.

    It finds the plain value, the value in JSON and in JSON within JSON, in base64, hexadecimal and
    URLs. Of a value of several lines it also finds each line of at least `MIN_LINE_CHARS`; with raw
    newlines it is found by those lines alone. A value of under `MIN_SECRET_BYTES` is left alone:
    see `is_redactable`.

    Of a value as a whole it also finds: all in capitals or in small letters, if it has a digit, as
    words have none; base64 wrapped at 64 or 76 columns, of which three digits before a line end may
    stay; base64 of base64; hexadecimal with spaces or colons, or as a list of `0x..`;
    percent-encoded twice.
    """

    def __init__(self, value_by_key: Mapping[str, str]) -> None:
        self._marker_by_form: dict[bytes, bytes] = {}
        unwrapped_by_form: dict[bytes, bytes] = {}
        for key, value in value_by_key.items():
            for form, unwrapped in _forms_of_value(value):
                self._marker_by_form.setdefault(form, f"[redacted {key}]".encode())
                unwrapped_by_form.setdefault(form, unwrapped)
        self._longest_bytes = max(map(len, self._marker_by_form), default=0)
        sizes = range(1, _HEAD_BYTES + 1)
        self._heads = {form[:size] for form in self._marker_by_form for size in sizes}
        self._index = _Index(unwrapped_by_form)
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
        if not self._index.may_be_in(text):
            return []
        found = {
            (start, start + len(form), self._marker_by_form[form])
            for start, form in self._index.found_in(text)
        }
        return sorted(found, key=lambda f: (f[0], -f[1]))

    def _undecided_from(self, text: bytes) -> int:
        """Return where a form starts that `text` cuts off.

        Only wrapped base64 has a newline in it, with one of its digits before.
        """
        first = len(text) - self._longest_bytes + 1
        line = text.rfind(b"\n") + 1
        if not _LINE_END_OF_BASE64.search(text, max(line - 3, 0), line):
            first = max(first, line)
        for at in range(max(first, 0), len(text)):
            head = text[at : at + _HEAD_BYTES]
            if head in self._heads:
                if len(head) < _HEAD_BYTES:
                    return at
                tail = text[at:]
                if any(form.startswith(tail) and form != tail for form in self._marker_by_form):
                    return at
        return len(text)


class _Index:
    """Search index of many forms in a text, by some machine words of each.

    Looking for numbers takes a tenth of the time of looking for a hundred forms. Of a text each
    word is looked at, or each second to fourth where all forms are long, and of a form a part that
    has one of these wherever it begins.
    """

    def __init__(self, unwrapped_by_form: Mapping[bytes, bytes]) -> None:
        shortest_bytes = min(map(len, unwrapped_by_form), default=0)
        # Parts of half the shortest form: of wrapped base64 there are then two beside each other.
        self._stride = min(_MAX_STRIDE, max(1, (shortest_bytes + 5) // (2 * _WORD_BYTES)))
        phases = self._stride * _WORD_BYTES
        part_bytes = phases + _WORD_BYTES - 1
        # By a part: where in a form it stands, and the form.
        self._forms_by_part: dict[bytes, list[tuple[int, bytes]]] = {}
        for form, unwrapped in unwrapped_by_form.items():
            at = _part_at(form, unwrapped, part_bytes)
            part = form[at : at + part_bytes]
            self._forms_by_part.setdefault(part, []).append((at, form))
        self._parts_by_word: dict[int, list[bytes]] = {}
        for part in self._forms_by_part:
            for at in range(phases):
                word = memoryview(part)[at : at + _WORD_BYTES].cast("I")[0]
                self._parts_by_word.setdefault(word, []).append(part)
        self._words = set(self._parts_by_word)

    def may_be_in(self, text: bytes) -> bool:
        """Return whether to look further."""
        return not self._words.isdisjoint(self._looked_at(text))

    def found_in(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield where a form begins, and the form, once or more often."""
        words = self._words.intersection(self._looked_at(text))
        parts = {part for word in words for part in self._parts_by_word[word]}
        for part in parts:
            for at in _each(part, text):
                for offset, form in self._forms_by_part[part]:
                    if at >= offset and text.startswith(form, at - offset):
                        yield at - offset, form

    def _looked_at(self, text: bytes) -> memoryview:
        whole_words = memoryview(text)[: len(text) // _WORD_BYTES * _WORD_BYTES]
        return whole_words.cast("I")[:: self._stride]


def _part_at(form: bytes, unwrapped: bytes, part_bytes: int) -> int:
    """Return where a part of a form stands: in the middle, since values of one kind begin alike.

    Of base64 that is wrapped it is one of two parts, so that many forms have the same.
    """
    if form != unwrapped:
        first = (len(unwrapped) - part_bytes) // 4
        for at in (first, min(first + _LESS_THAN_A_LINE, len(unwrapped) - part_bytes)):
            found = form.find(unwrapped[at : at + part_bytes])
            if found >= 0:
                return found
    return (len(form) - part_bytes) // 2


def _each(part: bytes, text: bytes) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _forms_of_value(value: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield all that is looked for, once or more often, each with what it is without line ends."""
    if not is_redactable(value):
        return
    # Without the newline that `echo` puts at the end: what is around a value hides nothing.
    whole = value.strip()
    lines = [line.strip() for line in whole.split("\n")]
    long_lines = [line for line in lines if len(line) >= MIN_LINE_CHARS and line != whole]
    found = _forms(whole) | _more_forms(whole)
    for form in found.union(*map(_forms, long_lines)):
        if "\n" not in form:
            yield form.encode(), form.encode()
    for form, unwrapped in _wrapped(whole.encode()):
        yield form.encode(), unwrapped.encode()


def _forms(text: str) -> set[str]:
    once = _json_escaped(text)
    twice = {form for escaped in once for form in _json_escaped(escaped)}
    raw = text.encode()
    return {text, *once, *twice, *_base64(raw), raw.hex(), raw.hex().upper(), *_in_url(raw)}


def _more_forms(text: str) -> set[str]:
    """Return forms that are looked for of a value as a whole only."""
    raw = text.encode()
    return _in_other_case(text) | _encoded_twice(raw) | _separated_hexadecimal(raw)


def _in_other_case(text: str) -> set[str]:
    """Return a value that is no word in capitals and in small letters."""
    if not any(char.isdecimal() for char in text):
        return set()
    return {
        form for other in (text.upper(), text.lower()) for form in (other, *_json_escaped(other))
    }


def _encoded_twice(raw: bytes) -> set[str]:
    in_base64 = {form for once in _base64(raw) for form in _base64(once.encode())}
    return in_base64 | {form for once in _in_url(raw) for form in _in_url(once.encode())}


def _separated_hexadecimal(raw: bytes) -> set[str]:
    pairs = {raw.hex(" "), raw.hex(":")}
    listed = {"0x" + raw.hex(" ").replace(" ", f"{comma}0x") for comma in (",", ", ")}
    return pairs | listed | {form.upper().replace("0X", "0x") for form in pairs | listed}


def _wrapped(raw: bytes) -> Iterator[tuple[str, str]]:
    """Yield base64 of any text with `raw` in it, wrapped wherever in the text the value stands."""
    if len(raw) > _MAX_WRAPPED_BYTES:
        return
    for digits in _standard_base64(raw):
        left_out = min(_MAX_LEFT_OUT, len(digits) - _LEAST_DIGITS)
        for columns in _COLUMNS:
            for first in range(1, min(columns, len(digits) - 1) + 1):
                rest = range(first, len(digits), columns)
                lines = [digits[:first], *(digits[at : at + columns] for at in rest)]
                looked_for = lines[1:] if first <= left_out else lines
                yield from ((end.join(looked_for), digits) for end in _LINE_ENDS)


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
    standard = _standard_base64(raw)
    url_safe = {form.replace("+", "-").replace("/", "_") for form in standard}
    return _with_slashes_escaped(standard) | url_safe


def _standard_base64(raw: bytes) -> set[str]:
    standard = set()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode()
        bits = 8 * (before + len(raw))
        standard.add(encoded[-(-8 * before // 6) : bits // 6])
    return standard


def _in_url(raw: bytes) -> set[str]:
    encoded = [
        other.sub(lambda byte: b"%%%02X" % ord(byte[0]), raw).decode() for other in _NOT_IN_URL
    ]
    upper = {*encoded, *(form.replace("%20", "+") for form in encoded)}
    return upper | {re.sub("%..", lambda digits: digits[0].lower(), form) for form in upper}
