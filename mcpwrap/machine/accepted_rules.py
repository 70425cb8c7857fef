"""Files of accepted suggestions: the rules, a policy file, and their test cases, for root alone."""

import hashlib
from contextlib import suppress

from mcpwrap.config.parse import SourceFile
from mcpwrap.config.policy.parse import parse_policy
from mcpwrap.config.policy.yaml_tree import MAX_BYTES
from mcpwrap.core.policy.rules import Policy
from mcpwrap.errors import UsageError
from mcpwrap.linux.root_files import read_roots_own
from mcpwrap.machine.policy_files import FOLDER

RULES = f"{FOLDER}/accepted.yaml"
# Not in the folder of the policy, where each file is a policy.
CASES = "/etc/mcpwrap/policy-cases/accepted.yaml"


def content(path: str) -> str:
    """Return the text of one of the two files; "" if it does not exist.

    Raises:
        UsageError: it is not root's own, or not UTF-8.
    """
    text = b""
    with suppress(FileNotFoundError):
        text = read_roots_own(path, max_bytes=MAX_BYTES)
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            "not UTF-8; nothing was changed",
            where=path,
            fix="save the file as UTF-8",
            code="E-POLICY-NOT-UTF8",
        ) from error


def cases() -> SourceFile:
    """Return the cases of the accepted rules.

    Raises:
        UsageError: no rule was accepted yet, or the caller is not root.
    """
    text = content(CASES)
    if not text:
        raise UsageError(
            "no rule was accepted yet, so there are no cases",
            where=CASES,
            fix="`sudo mcpwrap policy suggest` shows rules to accept",
            code="E-POLICY-TEST-NO-CASES",
        )
    return SourceFile(CASES, text.encode())


def digest(text: str) -> str:
    """Return the digest by which root's program sees that a file is as it was."""
    return hashlib.sha256(text.encode()).hexdigest()


def policy_with(files: list[SourceFile], rules: str) -> Policy:
    """Return the policy of all files, with this text in the place of the accepted rules.

    Raises:
        PolicyError: a file has errors, or two have a rule of one name.
    """
    others = [file for file in files if file.name != RULES]
    wanted = SourceFile(RULES, rules.encode())
    return parse_policy(sorted([*others, wanted], key=lambda file: _order(file.name)))


def _order(name: str) -> tuple[bool, str]:
    """Return the place of a file: `policy.yaml` is the first."""
    return name.startswith(FOLDER), name
