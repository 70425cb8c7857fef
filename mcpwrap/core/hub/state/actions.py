"""Actions of a hub, which its process carries out in their order."""

import msgspec


class LineToAgent(msgspec.Struct, frozen=True):
    """Write this line to the agent, newline included."""

    line: bytes


class LineToMember(msgspec.Struct, frozen=True):
    """Write this line to a member, newline included."""

    member: str
    line: bytes


class OpenMember(msgspec.Struct, frozen=True):
    """Have the supervisor open a session of a member."""

    member: str


class CloseMember(msgspec.Struct, frozen=True):
    """Close the session of a member, and discard what it still sends."""

    member: str


class LogLine(msgspec.Struct, frozen=True):
    """Line for the journal of the hub's wrapper."""

    text: str


Action = LineToAgent | LineToMember | OpenMember | CloseMember | LogLine
