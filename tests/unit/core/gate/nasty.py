"""Generated ambiguous JSON lines: most are valid in all but one place."""

import json

from hypothesis import strategies as st

KEYS = ["name", "Name", "n\\u0061me", "arguments", "a", "A", "", "__proto__", "\\u0000", "é"]
TEXTS = ["read", "drop", "\\u0064rop", "\\ud83d\\ude00", "\\/", "\\u0000\\n", "\\\\\\u0022", "{}"]
BAD_TEXTS = ["\\ud800", "\\udc00\\ud800", "\\x", "\t"]
NUMBERS = ["0", "-0", "-0.0", "1", "1.0", "1e2", "1E+2", "0.1", "1e-400", "5e-324", "1e22"]
NUMBERS += ["9007199254740993", "12345678901234567890123", "9" * 308, "-" + "1" * 309, "123.4560"]
BAD_NUMBERS = ["01", "+1", "1.", ".1", "0x10", "NaN", "-Infinity", "1_0", "\uff11", "1e400"]
BAD_NUMBERS += ["-1e999", "1" * 5000, "9" * 309, "-" + "9" * 400]
SPACES = ["", " ", "\t", "\r", "  "]
BAD_SPACES = ["\n", "\x0b", "\x00", "\ufeff", "\u00a0", "/**/"]
IDS = ["1", '"1"', "0", "-0", "-7", '""']
BAD_IDS = ["1.0", "true", "null", "[]", "9007199254740992", '"call"', '"open1"']
METHODS = ["tools/call", "tools\\/call", "t\\u006fols/call"]
OTHER_METHODS = ["Tools/Call", "tools/call ", "tools/list", "ping", "notifications/progress"]
MORE = ['"jsonrpc":"2.0"', '"method":"ping"', '"extra":1', '"Method":"tools/call"', '"params":{}']
MORE += ['"Params":{}', '"id":2', '"ID":2', '"result":{}', '"\\u0069d":3']


def mostly(good: list[str], bad: list[str]) -> st.SearchStrategy[str]:
    """Return one of the valid values, and sometimes another."""
    return st.integers(0, 23).flatmap(lambda n: st.sampled_from(good if n else bad))


scalars = st.one_of(
    mostly(NUMBERS, BAD_NUMBERS),
    mostly(TEXTS, BAD_TEXTS).map('"{}"'.format),
    st.text().map(json.dumps),
    st.text().map(lambda text: json.dumps(text, ensure_ascii=False)),
)


def _object(members: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f'"{key}":{value}' for key, value in members) + "}"


def _objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return objects, few of which have a key twice."""
    members = st.tuples(st.sampled_from(KEYS), inner)
    distinct = st.lists(members, max_size=3, unique_by=lambda member: member[0])
    return st.one_of(distinct, distinct, distinct, st.lists(members, max_size=3)).map(_object)


values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
        _objects(inner),
        st.tuples(st.integers(1, 80), inner).map(lambda n: "[" * n[0] + n[1] + "]" * n[0]),
    ),
    max_leaves=5,
)


@st.composite
def messages(draw: st.DrawFn) -> str:
    """Return a call, or a message that is nearly one."""
    params = [f'"name":"{draw(mostly(TEXTS, BAD_TEXTS))}"']
    if draw(st.booleans()):
        params.append(f'"arguments":{draw(_objects(values))}')
    if not draw(st.integers(0, 7)):
        params.append(f'"{draw(st.sampled_from(KEYS))}":{draw(values)}')
    members = [
        '"jsonrpc":"2.0"',
        f'"method":"{draw(mostly(METHODS, OTHER_METHODS))}"',
        f'"params":{{{",".join(draw(st.permutations(params)))}}}',
        f'"id":{draw(mostly(IDS, BAD_IDS))}',
    ]
    if not draw(st.integers(0, 7)):
        members.append(draw(st.sampled_from(MORE)))
    comma = draw(mostly(SPACES, BAD_SPACES)) + "," + draw(mostly(SPACES, BAD_SPACES))
    return "{" + comma.join(draw(st.permutations(members))) + "}"


@st.composite
def answers(draw: st.DrawFn) -> str:
    """Return a response of a server, to a request of `agreement.gate_in_session` or to none."""
    answered = draw(st.sampled_from(['"call"', '"open0"', '"open1"', *IDS, *BAD_IDS]))
    form = draw(st.sampled_from(["{}", '{{"content":{}}}', '{{"tools":[{}]}}', '{{"task":{}}}']))
    what = draw(mostly(["result"], ["error", "Result"]))
    return f'{{"jsonrpc":"2.0","id":{answered},"{what}":{form.format(draw(values))}}}'


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Return one or several messages, sometimes in another encoding, or with bytes changed."""
    one = st.one_of(messages(), messages(), answers())
    several = st.lists(one, max_size=3).map(lambda elements: f"[{','.join(elements)}]")
    text = draw(st.one_of(one, one, several))
    encoding = draw(mostly(["utf-8"], ["utf-8-sig", "utf-16", "utf-32", "latin-1"]))
    line = bytearray(text.encode(encoding, errors="replace"))
    if not draw(st.integers(0, 3)):
        at = draw(st.integers(0, len(line)))
        line[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(line) + draw(st.sampled_from([b"\n", b"\r\n", b""]))
