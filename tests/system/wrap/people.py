"""Account of alice, and the answers of alice and root to `wrap` and `unwrap`."""

from tests.system.bed.machine import Machine

HOME = "/home/alice"
ANSWERS = [(r"Do this\?", "y"), ("yes or no: ", "yes")]
PASSWORD = "only for approvals"
# Of `mcpwrap init` for alice, on a fresh machine. Enter is yes.
FIRST_RUN = [
    (r"Add alice to it\? \[Y/n\]: ", ""),
    (r"Set one for alice\? \[Y/n\]: ", ""),
    ("New password.*: ", PASSWORD),
    ("Once more: ", PASSWORD),
    (r"Do this\? \[Y/n\]: ", ""),
    ("yes or no: ", "yes"),
]
UNWRAPS = [(r"\[y/N\]", "y")]


def add_alice(machine: Machine) -> None:
    """Make an account that has every right by sudo."""
    machine.add_person("alice")
    machine.write("/etc/sudoers.d/alice", "alice ALL=(ALL) NOPASSWD: ALL\n", mode=0o440)
