"""Warning about a missing sandbox layer: it says what the server can do without it."""

import pytest

from mcpwrap.as_agent.run.sandbox.layers import SandboxLayer, without

ALL = frozenset(SandboxLayer)


@pytest.mark.parametrize(
    ("layer", "others", "said"),
    [
        (
            SandboxLayer.NAMESPACES,
            ALL - {SandboxLayer.NAMESPACES},
            "watch their names, sizes and times",
        ),
        (
            SandboxLayer.LANDLOCK,
            ALL - {SandboxLayer.LANDLOCK},
            "only mounts keep your files from it",
        ),
        (
            SandboxLayer.LANDLOCK,
            frozenset({SandboxLayer.SECCOMP}),
            "it can read and change your files",
        ),
        (SandboxLayer.SECCOMP, frozenset({SandboxLayer.LANDLOCK}), "it can speak to services"),
    ],
)
def test_a_missing_layer_is_told_with_what_is_left(
    layer: SandboxLayer, others: frozenset[SandboxLayer], said: str
) -> None:
    assert said in without(layer, others)
