"""What a session asks of whoever asks people, and what it is told: the words between the two."""

from typing import Literal, Protocol

import msgspec

from mcpwrap.core.judgement import Json


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A request that the policy lets through only if a person does."""

    method: str
    target: str
    definition: str  # hash of a tool that is not any more as the server first listed it
    params: dict[str, Json]  # without `_meta`
    rule: str
    message: str  # the rule's
    expires_s: float


class Approved(msgspec.Struct, frozen=True):
    """A person has approved it: it may run, this once."""

    id: str
    shown: str  # digest of what was shown
    by: str  # who, and by which channel


class Waits(msgspec.Struct, frozen=True):
    """A person is asked."""

    id: str
    shown: str


class NotAsked(msgspec.Struct, frozen=True):
    """Nobody is asked; it does not run."""

    why: str


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request that is held."""

    hold: int
    what: Literal["approved", "denied", "expired", "void"]
    by: str = ""
    reason: str = ""  # the person's
    stops: bool = False  # the session is to end


class Approvals(Protocol):
    """Where people are asked. A hold is one request that waits, by its number in the session."""

    state_key: bytes  # 32 random bytes, of this session alone

    def ask(self, hold: int, wanted: Wanted) -> Approved | Waits | NotAsked:
        """Ask for a request, or use up an approval that was given for it."""

    def withdraw(self, hold: int, *, comes_again: bool) -> None:
        """Say that a request waits no more; its approval still may, if it `comes_again`."""

    def answer(self, hold: int, *, approves: bool) -> None:
        """Give the answer that came by the agent's own window."""


class Nobody:
    """Where there is nobody to be asked."""

    state_key = bytes(32)  # nothing is ever sealed with it

    def ask(self, _hold: int, _wanted: Wanted) -> NotAsked:
        """Say so."""
        return NotAsked("")

    def withdraw(self, _hold: int, *, comes_again: bool) -> None:
        """Hold nothing."""

    def answer(self, _hold: int, *, approves: bool) -> None:
        """Hold nothing."""


NOBODY = Nobody()
