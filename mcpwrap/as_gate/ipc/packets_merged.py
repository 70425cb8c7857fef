"""Error for a packet between the gate's processes that is not valid."""


class ChannelError(ValueError):
    """A packet that the other side cannot have sent, unless it was taken over."""
