"""RUNS AS mcpw-NAME: `mcpwrap@NAME.service`."""

import os
import pwd
import sys
from pathlib import Path

from mcpwrap.as_wrapper.session import Surroundings
from mcpwrap.as_wrapper.supervisor import Supervisor
from mcpwrap.core.spec import decode_spec
from mcpwrap.linux import cgroup, prctl
from mcpwrap.linux.activation import Notifier, listening_socket

GATE_ACCOUNT = "mcpwrap-gate"
# A tmpfs that only this service sees; its drop-in mounts it.
RUNTIME = Path("/run/mcpwrap/rt")


def main() -> int:
    """Serve sessions until systemd stops us. What goes wrong before READY=1 fails the start."""
    environ = dict(os.environ)
    prctl.forbid_dumps()
    prctl.adopt_orphans()
    spec = decode_spec(Path(environ["CREDENTIALS_DIRECTORY"], "spec").read_bytes())
    me = pwd.getpwuid(os.geteuid())
    if me.pw_name != f"mcpw-{spec.name}":
        print(f"I am {me.pw_name}, and was given the server of {spec.name}", file=sys.stderr)
        return 1
    tree = cgroup.own()
    cgroup.Leaf(tree, "supervisor").enter()
    surroundings = Surroundings(
        account=me.pw_name,
        gate_uid=pwd.getpwnam(GATE_ACCOUNT).pw_uid,
        runtime=RUNTIME / spec.name,
        state=Path(environ["STATE_DIRECTORY"]) if spec.state else None,
        tree=tree,
    )
    Supervisor(spec, surroundings, listening_socket(environ), Notifier()).serve()
    return 0
