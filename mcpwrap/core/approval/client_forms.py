"""Clients that were asked for an approval by elicitation, and how they answered: measured once.

A client may declare elicitation and draw no form: it declines by itself, or answers with an error.
The same name and version may do both, as an interactive program and as a batch run.

Times are seconds since 1970.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec
from msgspec.structs import replace

# Faster than this no person has read the question and answered it; the terminal view ignores keys
# for as long. Clients that answer by themselves were seen to take a few milliseconds.
PERSON_S = 0.7
AGAIN_S = 7 * 86_400.0  # after which a client that answered by itself is measured again
MAX_CLIENTS = 64
MAX_NAME_CHARS = 64


class FormAnswer(StrEnum):
    """Answer to an approval form in the agent's own window."""

    APPROVED = "approved"
    DENIED = "denied"
    CLOSED = "closed"  # by the user, without an answer
    BY_ITSELF = "by itself"  # of the client: an error, or too fast for a person


class ClientIdentity(msgspec.Struct, frozen=True):
    """Name and version by which a client introduces itself (MCP, `clientInfo`)."""

    name: str = ""
    version: str = ""


NO_CLIENT = ClientIdentity()


class FormRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Client, with the times of its last answers."""

    name: str
    version: str
    drawn_at: float = 0.0  # an answer of a person; 0: never
    by_itself_at: float = 0.0

    @property
    def client(self) -> ClientIdentity:
        """Return the name and version."""
        return ClientIdentity(self.name, self.version)

    def later(self, other: "FormRecord") -> "FormRecord":
        """Return the record with the later times of another one."""
        drawn_at = max(self.drawn_at, other.drawn_at)
        by_itself_at = max(self.by_itself_at, other.by_itself_at)
        return replace(self, drawn_at=drawn_at, by_itself_at=by_itself_at)

    def describe(self) -> str:
        """Return what is known of the client's forms."""
        if self.drawn_at and self.by_itself_at:
            return "draws forms, and has answered some by itself"
        if self.drawn_at:
            return "draws forms"
        return "declares forms, and answers them by itself: asked elsewhere"


class ClientForms:
    """Records of clients, those that answered longest ago first."""

    def __init__(self, records: Iterable[FormRecord] = ()) -> None:
        self._record_by_client: dict[ClientIdentity, FormRecord] = {}
        for one in records:
            self._put(one.client, one.later(self._record_by_client.pop(one.client, one)))

    def records(self) -> list[FormRecord]:
        """Return all records."""
        return list(self._record_by_client.values())

    def may_draw(self, client: ClientIdentity, now: float) -> bool:
        """Return whether a client is to be asked: it draws forms, or that is to be measured."""
        record = self._record_by_client.get(client)
        if record is None or record.drawn_at:
            return True
        return now - record.by_itself_at >= AGAIN_S

    def take(self, client: ClientIdentity, answer: FormAnswer, now: float) -> bool:
        """Record an answer; return whether something new is known of the client.

        A closed form tells nothing: some clients close one by themselves after a timeout.
        """
        if not client.name or answer is FormAnswer.CLOSED:
            return False
        could_draw = self.may_draw(client, now)
        before = self._record_by_client.pop(client, None)
        record = before or FormRecord(name=client.name, version=client.version)
        if answer is FormAnswer.BY_ITSELF:
            record = replace(record, by_itself_at=now)
        else:
            record = replace(record, drawn_at=now)
        self._put(client, record)
        is_measured_again = could_draw is not self.may_draw(client, now)
        return before is None or is_measured_again or record.describe() != before.describe()

    def _put(self, client: ClientIdentity, record: FormRecord) -> None:
        self._record_by_client[client] = record
        if len(self._record_by_client) > MAX_CLIENTS:
            del self._record_by_client[next(iter(self._record_by_client))]


def encode(records: Iterable[FormRecord]) -> bytes:
    """Return the records as the text of a file."""
    return msgspec.json.encode(list(records)) + b"\n"


def decode(text: bytes) -> list[FormRecord]:
    """Return the records of a file.

    Raises:
        msgspec.MsgspecError: it is damaged, or of another version.
    """
    return msgspec.json.decode(text, type=list[FormRecord])
