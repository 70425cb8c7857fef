"""Warning about a missing sandbox layer: what the server can do without it."""

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
            "only mounts protect your files from the server",
        ),
        (
            SandboxLayer.LANDLOCK,
            frozenset({SandboxLayer.SECCOMP}),
            "the server can read and change your files",
        ),
        (SandboxLayer.SECCOMP, frozenset({SandboxLayer.LANDLOCK}), "can connect to services"),
    ],
)
def test_a_missing_layer_is_reported_with_its_effect(
    layer: SandboxLayer, others: frozenset[SandboxLayer], said: str
) -> None:
    assert said in without(layer, others)
