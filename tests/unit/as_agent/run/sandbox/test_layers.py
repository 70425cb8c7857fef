"""Warning about a missing sandbox layer: it says what the server can do without it."""

import pytest

from mcpwrap.as_agent.run.sandbox.layers import Layer, without

ALL = frozenset(Layer)


@pytest.mark.parametrize(
    ("layer", "others", "said"),
    [
        (Layer.NAMESPACES, ALL - {Layer.NAMESPACES}, "watch their names, sizes and times"),
        (Layer.LANDLOCK, ALL - {Layer.LANDLOCK}, "only mounts keep your files from it"),
        (Layer.LANDLOCK, frozenset({Layer.SECCOMP}), "it can read and change your files"),
        (Layer.SECCOMP, frozenset({Layer.LANDLOCK}), "it can speak to services"),
    ],
)
def test_a_missing_layer_is_told_with_what_is_left(
    layer: Layer, others: frozenset[Layer], said: str
) -> None:
    assert said in without(layer, others)
