"""`mcpwrap policy default disable | enable`: root's file of disabled rules, and its reload."""

from mcpwrap.as_root import gate_reload
from mcpwrap.config.policy.default_policy_file import change_of, changed
from mcpwrap.errors import nothing_changed
from mcpwrap.linux import root_files, tty
from mcpwrap.machine import policy_files
from mcpwrap.machine.default_policy import shipped


def change(verb: str, rule: str, server: str) -> None:
    """Disable or enable a rule, and have the gate read it.

    Raises:
        UsageError: the default policy has no such rule, or a policy file has errors.
        McpwrapError: the gate could not be reloaded. The file is written.
    """
    wanted = change_of(verb, rule, server, shipped.load())
    own = policy_files.DEFAULT_POLICY_FILE
    text = changed(policy_files.policy_files(), own, wanted)
    with nothing_changed():
        root_files.replace(own, text)
    tty.say(f"{wanted.done()}, from {gate_reload.after_writing(own)}")
