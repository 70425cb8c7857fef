"""RUNS AS mcpwrap-gate: what is wrong with a packet between its processes."""


class ChannelError(ValueError):
    """A packet that the other side cannot have sent, unless it was taken over."""
