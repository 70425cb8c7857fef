"""File of one approval rule: the SHA-256 of the rest on the first line, and the rule as JSON."""

import hashlib

import msgspec

from mcpwrap.core.approval.approval_rule import ApprovalRule

FOLDER = "/var/lib/mcpwrap/approval-rules"
SUFFIX = ".json"
CLIENT_FORMS = "client-forms-"  # and a UID, in the same folder: clients of that account's sessions
MAX_FILE_BYTES = 1024 * 1024
ID_DIGITS = 8  # hexadecimal, of a rule's id


class DamagedRuleError(ValueError):
    """Content that mcpwrap did not write, that was changed since, or of another version."""


def encode(rule: ApprovalRule) -> bytes:
    """Return the content of the file."""
    content = msgspec.json.encode(rule)
    return f"{hashlib.sha256(content).hexdigest()}\n".encode() + content


def decode(content: bytes, id_: str) -> ApprovalRule:
    """Return the rule of this id, which is in force if it has not expired.

    Raises:
        DamagedRuleError: the file was damaged or changed, or is another rule's.
    """
    digest, _, rest = content.partition(b"\n")
    if digest != hashlib.sha256(rest).hexdigest().encode():
        raise DamagedRuleError("damaged or changed")
    try:
        rule = msgspec.json.decode(rest, type=ApprovalRule)
    except msgspec.MsgspecError as error:
        raise DamagedRuleError(f"of another version: {error}") from error
    if rule.id != id_:
        raise DamagedRuleError("the file of another rule")
    return rule
