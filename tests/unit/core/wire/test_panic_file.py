"""Emergency stop, of single servers or of all."""

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
def test_stopping_servers(before: Panic, names: list[str], after: Panic) -> None:
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
def test_resuming_servers(before: Panic, names: list[str], after: Panic) -> None:
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
def test_a_server_that_either_file_stops_is_stopped(one: Panic, other: Panic, both: Panic) -> None:
    assert one.merged(other) == other.merged(one) == both


@pytest.mark.parametrize("panic", [NOTHING, ALL, Panic(names=("git", "time"))])
def test_a_file_is_read_as_it_was_written(panic: Panic) -> None:
    assert decode(encode(panic).encode()) == panic


@pytest.mark.parametrize("text", [b"", b"{", b'{"everything": "no"}', b'{"x": 1}', b"\xff", b"[]"])
def test_a_malformed_file_stops_everything(text: bytes) -> None:
    assert decode(text) == ALL
