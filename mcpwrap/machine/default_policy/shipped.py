"""Files of the default policy, beside this module: the rules, encoded, and their test cases.

`policy.yaml` is what people read and change. `policy.json` is made from it, because parsing YAML
would take longer than all else that `mcpwrap run` does before it starts a server.
"""

from functools import cache
from pathlib import Path

from mcpwrap.config.parse import SourceFile
from mcpwrap.core.policy import rules
from mcpwrap.core.policy.default_policy import with_default_policy
from mcpwrap.core.policy.rules import Policy

FOLDER = Path(__file__).parent
TEXT, ENCODED, CASES = "policy.yaml", "policy.json", "cases.yaml"


@cache
def load() -> Policy:
    """Return the rules and limits of the default policy."""
    return rules.decode((FOLDER / ENCODED).read_bytes())


def extended(policy: Policy) -> Policy:
    """Return an operator's policy as it is in force: with the default policy, unless it is off."""
    return with_default_policy(policy, load())


def cases() -> SourceFile:
    """Return the test cases of the default policy."""
    return SourceFile(CASES, (FOLDER / CASES).read_bytes())
