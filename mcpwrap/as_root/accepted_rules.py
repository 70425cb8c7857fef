"""`mcpwrap policy accept`: files of accepted rules and their cases, and the gate's reload."""

from mcpwrap.as_root import gate_reload
from mcpwrap.errors import UsageError, nothing_changed
from mcpwrap.linux import root_files, tty
from mcpwrap.linux.root_files import NewFile
from mcpwrap.machine import accepted_rules, policy_files

END_OF_RULES = b"\0"  # on standard input, between the text of the rules and that of the cases


def write(before: str, given: bytes) -> None:
    """Write both files, if the rules are those of this digest, and have the gate read them.

    Raises:
        PolicyError: the policy would have errors; nothing was changed.
        UsageError: another program has changed the rules meanwhile; nothing was changed.
        McpwrapError: the gate could not be reloaded. The files are written.
    """
    rules, _, cases = (part.decode() for part in given.partition(END_OF_RULES))
    if accepted_rules.digest(accepted_rules.content(accepted_rules.RULES)) != before:
        raise UsageError(
            "the file has changed since the rule was shown; nothing was changed",
            where=accepted_rules.RULES,
            fix="repeat the command",
            code="E-POLICY-ACCEPTED-CHANGED",
        )
    accepted_rules.policy_with(policy_files.policy_files(), rules)
    with nothing_changed():
        root_files.replace_all([
            # Before the rules: with the cases alone nothing is allowed.
            NewFile(path=accepted_rules.CASES, text=cases, mode=0o600),
            NewFile(path=accepted_rules.RULES, text=rules),
        ])  # fmt: skip
    tty.say(f"accepted, from {gate_reload.after_writing(accepted_rules.RULES)}")
