"""Output of `apply`: each step, and the last one reached."""

from types import SimpleNamespace

import pytest

from mcpwrap.as_root.apply import apply
from mcpwrap.errors import McpwrapError
from mcpwrap.machine import planning
from mcpwrap.plan import steps
from mcpwrap.plan.diff.diff import RetirementPolicy

STEPS: list[steps.Step] = [steps.ReloadUnits(), steps.StopUnit("a.service")]


def planned(todo: list[steps.Step]) -> SimpleNamespace:
    return SimpleNamespace(wanted=None, steps=todo, notes=["/var was too much"])


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "planned", lambda _: planned(STEPS))
    monkeypatch.setattr(apply, "check_workspaces", lambda _: ["a does not start"])
    monkeypatch.setattr(planning, "notes", lambda: ["b neither"])
    monkeypatch.setattr(apply, "carry_out", lambda _: None)


def test_each_step_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    apply.apply(RetirementPolicy.KEEP)
    assert capsys.readouterr().out == (
        f"  1/2  {STEPS[0].describe()}\n  2/2  {STEPS[1].describe()}\n"
        "done\nnote: a does not start\nnote: /var was too much\nnote: b neither\n"
    )


def test_nothing_to_do_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "planned", lambda _: planned([]))
    apply.apply(RetirementPolicy.PURGE)
    assert capsys.readouterr().out.startswith("nothing to do\nnote: ")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(28, "No space left on device"),
            "No space.*\n  1 steps before.*\n.*make room",
        ),
        (
            McpwrapError("odd", where="x", fix="do y", code="E-FILE-ACCESS"),
            r"odd \[E-FILE-ACCESS\]\n  1 steps before.*\n.*do y; then",
        ),
    ],
)
def test_the_step_that_fails_is_the_last(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(step: steps.Step) -> None:
        if step == STEPS[1]:
            raise error

    monkeypatch.setattr(apply, "carry_out", fail)
    with pytest.raises(McpwrapError, match=said) as found:
        apply.apply(RetirementPolicy.KEEP)
    assert found.value.where == STEPS[1].describe()
