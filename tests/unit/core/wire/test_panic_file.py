"""Servers stopped in an emergency, one by one or all at once."""

import pytest

from mcpwrap.core.wire.panic_file import Panic, decode, encode

NOTHING, ALL = Panic(), Panic(everything=True)


@pytest.mark.parametrize(
    ("before", "names", "after"),
    [
        (NOTHING, [], ALL),
        (NOTHING, ["git"], Panic(names=("git",))),
        (Panic(names=("git",)), ["time", "git"], Panic(names=("git", "time"))),
        (Panic(names=("git",)), [], Panic(everything=True, names=("git",))),
        (ALL, ["git"], Panic(everything=True, names=("git",))),
    ],
)
def test_what_is_stopped(before: Panic, names: list[str], after: Panic) -> None:
    assert before.with_names(names) == after
    assert all(after.stops(name) for name in names or ["whatever"])


@pytest.mark.parametrize(
    ("before", "names", "after"),
    [
        (ALL, [], NOTHING),
        (Panic(names=("git", "time")), ["git"], Panic(names=("time",))),
        (Panic(names=("git",)), ["git"], NOTHING),
        (Panic(names=("git",)), ["other"], Panic(names=("git",))),
        (Panic(everything=True, names=("git",)), [], NOTHING),
    ],
)
def test_what_goes_on(before: Panic, names: list[str], after: Panic) -> None:
    assert before.without_names(names) == after
    assert not any(after.stops(name) for name in names or ["whatever"])


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (NOTHING, NOTHING, NOTHING),
        (NOTHING, ALL, ALL),
        (Panic(names=("time",)), Panic(names=("git",)), Panic(names=("git", "time"))),
        (ALL, Panic(names=("git",)), Panic(everything=True, names=("git",))),
    ],
)
def test_what_either_file_stops_is_stopped(one: Panic, other: Panic, both: Panic) -> None:
    assert one.merged(other) == other.merged(one) == both


@pytest.mark.parametrize("panic", [NOTHING, ALL, Panic(names=("git", "time"))])
def test_there_and_back(panic: Panic) -> None:
    assert decode(encode(panic).encode()) == panic


@pytest.mark.parametrize("text", [b"", b"{", b'{"everything": "no"}', b'{"x": 1}', b"\xff", b"[]"])
def test_what_cannot_be_understood_stops_everything(text: bytes) -> None:
    assert decode(text) == ALL
