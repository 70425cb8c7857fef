"""Several instances of Squid: a port is released by one before another opens it."""

from itertools import permutations

import pytest

from mcpwrap.plan import paths, steps
from mcpwrap.plan.egress import squid_instances
from tests.unit.plan.machine import applied, plan, stages, wanted


@pytest.fixture(autouse=True)
def two_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit an instance to two servers, so that a few servers need several instances."""
    monkeypatch.setattr(squid_instances, "MAX_LISTENERS", 2)


def config(**kinds: str) -> str:
    """Return servers by the first letter of how their TLS is handled: `s`pliced or `o`pened."""
    return "".join(
        f"[mcp_servers.{name}]\ncommand = '/x'\n[mcp_servers.{name}.mcpwrap]\n"
        f"egress = ['{name}.example.com']\nintercept = {'true' if kind == 'o' else 'false'}\n"
        for name, kind in kinds.items()
    )


CONFIGS = {
    "nobody": config(),
    "one instance": config(a="s", b="s"),
    "two": config(a="s", b="s", c="s"),
    "three": config(a="s", b="s", c="s", d="s", e="s"),
    "without the first": config(c="s", d="s", e="s"),
    "all opened": config(a="o", b="o", c="o", d="o", e="o"),
    "half opened": config(a="o", b="s", c="o", d="s", e="s"),
    "the other half": config(a="s", b="o", c="s", d="o", e="o"),
}
PAIRS = pytest.mark.parametrize(
    ("before", "text"),
    [pytest.param(CONFIGS[a], CONFIGS[b], id=f"{a}, {b}") for a, b in permutations(CONFIGS, 2)],
)


@PAIRS
def test_whenever_root_stops_the_next_run_comes_to_an_end(before: str, text: str) -> None:
    machine = applied(before)
    for left in stages(machine, plan(text, machine.seen_by_root())):
        *_, end = stages(left.copy(), plan(text, left.seen_by_root()))
        want = wanted(text, end.seen_by_root())
        assert {instance: read for instance, (read, _) in end.squids.items()} == want.proxies
        assert paths.names_in(end.files, paths.proxy) == want.proxies.keys()
        assert plan(text, end.seen_by_root()) == []


@pytest.mark.parametrize(
    ("before", "text", "expected"),
    [
        ("two", "three", ["load proxy-2", "load proxy-3"]),
        ("three", "two", ["load proxy-2", "stop proxy-3"]),
        ("three", "without the first", ["stop proxy-1"]),
        ("without the first", "three", ["load proxy-2", "load proxy-3"]),
        # each needs a port of another: one is stopped
        (
            "half opened",
            "the other half",
            ["stop proxy-2", "load intercept-2", "stop intercept-1", "load proxy-1",
             "load intercept-1"],
        ),
    ],
)  # fmt: skip
def test_no_instance_is_touched_whose_servers_stay_as_they_are(
    before: str, text: str, expected: list[str]
) -> None:
    done = []
    for step in plan(CONFIGS[text], applied(CONFIGS[before]).seen_by_root()):
        match step:
            case steps.LoadProxy(instance, _):
                done.append(f"load {instance}")
            case steps.StopUnit(unit) if instance := paths.instance_of(unit):
                done.append(f"stop {instance}")
            case _:
                pass
    assert done == expected
