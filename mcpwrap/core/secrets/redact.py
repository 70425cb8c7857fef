"""Redaction of secrets in a server's output stream, which arrives in chunks of any size."""

import base64
import re
from collections.abc import Iterator, Mapping

# Shorter values occur in ordinary text by chance: redacting every "1234" would change messages.
MIN_SECRET_BYTES = 8
# The same for one line of a longer value, which is more often a phrase: `"type": "object",`.
MIN_LINE_CHARS = 20
# RFC 8259 section 7. Written here, like the escapes of URLs, because root calls `is_redactable`,
# and may import no module that parses JSON or fetches pages.
_JSON_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in range(0x20)},
    **str.maketrans({'"': r"\"", "\\": r"\\"}),
    **str.maketrans({"\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}),
}
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")  # DEL too: json.dumps() writes it as an escape
# Further escapes of encoding/json of Go, of Gson of Java, and of System.Text.Json of .NET.
_GO_ESCAPES = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&"})
_GSON_ESCAPES = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&='"})
_DOTNET_ESCAPES = {
    **_JSON_ESCAPES,
    **str.maketrans({char: f"\\u{ord(char):04X}" for char in "\"<>&+'`"}),
}
# Characters that are percent-encoded by RFC 3986 section 2.3, by quote() of Python with its
# default, and by encodeURIComponent().
_NOT_IN_URL = [re.compile(rf"[^A-Za-z0-9_.~{also}-]".encode()) for also in ("", "/", "!'()*")]
# Columns at which base64 is wrapped: RFC 2045 (base64(1), encodebytes() of Python) and RFC 7468.
_COLUMNS = (76, 64)
_LINE_ENDS = ("\n", "\r\n", r"\n", r"\r\n")  # as such, and in JSON
_MAX_WRAPPED_BYTES = 4096  # of a value: 1680 forms, each as long as the value in base64
_LEAST_DIGITS = 9  # of base64 in a form, so that no form is a word
# Digits before a line end that may stay: two bytes. A line that has only these is not held back.
_MAX_LEFT_OUT = 3
_LINE_END_OF_BASE64 = re.compile(rb"[A-Za-z0-9+/]\r?\n\Z")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_HEAD_BYTES = 8  # no form is shorter
_WORD_BYTES = 4  # of a machine word, type "I" of a memoryview
_MAX_STRIDE = 4  # words
_LESS_THAN_A_LINE = 24  # digits between two parts: a line end is in one of them at most


def is_redactable(value: str) -> bool:
    """Return whether a secret is redacted: it is long enough, and not a plain number.

    Space around it does not count. JSON may have a number without quotes, and a marker in its place
    would not be JSON. A number with an exponent counts as a hexadecimal token.
    """
    bare = value.strip()
    return len(bare.encode()) >= MIN_SECRET_BYTES and not _NUMBER.fullmatch(bare)


class Redactor:
    """Stream filter that replaces each secret by `[redacted KEY]`.

    It guards against accident: a debug log, an error that quotes its request, a dump of variables.
    A server that wants to leak a secret can, for example reversed. Against that, the server reaches
    only the hosts on its allowlist.

    It finds the plain value, and the value in JSON, in JSON within JSON, in base64, in hexadecimal
    and in URLs. Of a value of several lines it also finds each line of at least `MIN_LINE_CHARS`;
    with raw newlines it finds only these lines. A value of under `MIN_SECRET_BYTES` is not
    redacted: see `is_redactable`.

    Of a value as a whole it also finds: all upper or all lower case, if the value has a digit, as
    words have none; base64 wrapped at 64 or 76 columns, of which three digits before a line end may
    stay; base64 of base64; hexadecimal with spaces or colons, or as a list of `0x..`;
    percent-encoding applied twice.
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
        self._replaced_bytes = 0  # of the held bytes, those that a marker has already replaced

    def feed(self, chunk: bytes) -> bytes:
        """Return the bytes that are decided: all whole lines, and part of the last line.

        Fewer bytes are held back than the longest form has, even of a long line.
        """
        if not self._marker_by_form:
            return chunk
        text = self._held + chunk
        return self._pass_on(text, self._undecided_from(text))

    def rest(self) -> bytes:
        """Return the bytes that were held back, at the end of the stream."""
        return self._pass_on(self._held, len(self._held))

    def _pass_on(self, text: bytes, end: int) -> bytes:
        """Return `text` up to `end` without secrets, and hold the rest.

        Secrets that overlap get one marker: one for each would leave the tail of a secret readable.
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
        """Return start, end and marker of each occurrence, by start, and then the longest first."""
        if not self._index.may_be_in(text):
            return []
        found = {
            (start, start + len(form), self._marker_by_form[form])
            for start, form in self._index.found_in(text)
        }
        return sorted(found, key=lambda f: (f[0], -f[1]))

    def _undecided_from(self, text: bytes) -> int:
        """Return the first position at which a form may begin that `text` cuts off.

        Only wrapped base64 has a newline inside, after one of its digits.
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
    """Search index for many forms, by some machine words of each.

    A search for numbers takes a tenth of the time of a search for a hundred forms. Each word of a
    text is compared, or each second to fourth word if all forms are long. The index has a part of
    each form that is long enough to contain a compared word at any alignment.
    """

    def __init__(self, unwrapped_by_form: Mapping[bytes, bytes]) -> None:
        shortest_bytes = min(map(len, unwrapped_by_form), default=0)
        # Parts of half the shortest form, so that wrapped base64 has two of them side by side.
        self._stride = min(_MAX_STRIDE, max(1, (shortest_bytes + 5) // (2 * _WORD_BYTES)))
        phases = self._stride * _WORD_BYTES
        part_bytes = phases + _WORD_BYTES - 1
        # By part: its offset in a form, and the form.
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
        """Return whether a form may be in the text, so that a search is needed."""
        return not self._words.isdisjoint(self._compared_words(text))

    def found_in(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the start of an occurrence, and its form; some more than once."""
        words = self._words.intersection(self._compared_words(text))
        parts = {part for word in words for part in self._parts_by_word[word]}
        for part in parts:
            for at in _each(part, text):
                for offset, form in self._forms_by_part[part]:
                    if at >= offset and text.startswith(form, at - offset):
                        yield at - offset, form

    def _compared_words(self, text: bytes) -> memoryview:
        whole_words = memoryview(text)[: len(text) // _WORD_BYTES * _WORD_BYTES]
        return whole_words.cast("I")[:: self._stride]


def _part_at(form: bytes, unwrapped: bytes, part_bytes: int) -> int:
    """Return the offset of a form's part: in the middle, because values of one kind begin alike.

    Wrapped base64 uses one of two parts of the unwrapped digits, so that many forms share one.
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
    """Yield each form to search for, and that form without line ends; some more than once."""
    if not is_redactable(value):
        return
    # Without the newline that `echo` adds: space around a value must not hide it.
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
    """Return the forms that are searched for a whole value only, not for its lines."""
    raw = text.encode()
    return _in_other_case(text) | _encoded_twice(raw) | _separated_hexadecimal(raw)


def _in_other_case(text: str) -> set[str]:
    """Return a value in upper and in lower case, if it has a digit, so is not a word."""
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
    """Yield base64 of any text that contains `raw`, wrapped for each position in the text."""
    if len(raw) > _MAX_WRAPPED_BYTES:
        return
    for digits in _standard_base64(raw):
        left_out = min(_MAX_LEFT_OUT, len(digits) - _LEAST_DIGITS)
        for columns in _COLUMNS:
            for first in range(1, min(columns, len(digits) - 1) + 1):
                rest = range(first, len(digits), columns)
                lines = [digits[:first], *(digits[at : at + columns] for at in rest)]
                searched = lines[1:] if first <= left_out else lines
                yield from ((end.join(searched), digits) for end in _LINE_ENDS)


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
    """Return the base64 of `raw` inside any text, after 0, 1 or 2 bytes modulo 3.

    Characters that also encode bits before or after `raw` are left out. Ten characters of
    `MIN_SECRET_BYTES` remain, so no form is a word.
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
