"""A boundary that root has widened is named each time."""

import pytest

from mcpwrap.plan import widenings
from tests.unit.plan.configs import GIT
from tests.unit.plan.machine import parsed


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        (GIT, []),
        (f"[approvals]\n{GIT}", []),
        (f"[approvals]\nsame_uid = false\n{GIT}", []),
        (f"[approvals]\nwebhook = 'https://hook.example'\n{GIT}", []),
        (f"[approvals]\nsame_uid = true\n{GIT}", ["WIDENED by [approvals] same_uid"]),
    ],
)
def test_what_is_widened_is_said(text: str, fragments: list[str]) -> None:
    said = widenings.of(parsed(text))
    assert len(said) == len(fragments)
    assert all(fragment in line for fragment, line in zip(fragments, said, strict=True))
