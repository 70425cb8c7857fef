"""Records of calls that people were asked about."""

import msgspec

from mcpwrap.core.audit.records import Record
from mcpwrap.core.policy_review.questions import QuestionReader
from tests.unit.core.audit_records import OPENS, record


def plain(tool: str, arguments: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"name": tool, "arguments": arguments}))


def asked(
    number: int, tool: str, arguments: object, answer: str = "approved", by: str = "bob (command)"
) -> list[Record]:
    """Return the records of a question and its answer; "" if there is none."""
    about: dict[str, object] = {"id": number, "target": tool, "approval": f"q{number}"}
    found = [record(**about, decision="held", rule="ask", plain=plain(tool, arguments))]
    return [*found, record(**about, decision=answer, by=by)] if answer else found


def refused(number: int, tool: str, arguments: object, decision: str = "blocked") -> list[Record]:
    """Return the record of a call that was refused unasked."""
    return [record(id=number, target=tool, decision=decision, plain=plain(tool, arguments))]


def read(*records: list[Record]) -> QuestionReader:
    reader = QuestionReader(OPENS)
    for some in records:
        for one in some:
            reader.take(one)
    return reader
