"""Account of alice, and the answers of alice and root to `wrap` and `unwrap`."""

from tests.system.bed.machine import Machine

HOME = "/home/alice"
ANSWERS = [(r"Do this\?", "y"), ("yes or no: ", "yes")]
UNWRAPS = [(r"\[y/N\]", "y")]


def add_alice(machine: Machine) -> None:
    """Make an account that has every right by sudo."""
    machine.add_person("alice")
    machine.write("/etc/sudoers.d/alice", "alice ALL=(ALL) NOPASSWD: ALL\n", mode=0o440)
