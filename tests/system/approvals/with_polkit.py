"""Machine with polkit, on which alice and mallory have a password, and calls wait for approval."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed import installed
from tests.system.bed.machine import BED_AT, Machine
from tests.system.support import approvers

PASSWORD = "correct horse 7"
# The gate's unit without the directives that start it and keep it up.
NOT_OF_THE_SANDBOX = re.compile(r"(Exec\w+|Type|Restart\w*|WatchdogSec|TimeoutStopSec)=")


@contextmanager
def booted(suite: str) -> Iterator[Machine]:
    """Boot it, with a service that queries polkit as the gate's account, in its sandbox."""
    with installed.polkit_machine(suite) as machine:
        approvers.prepare(machine)
        machine.add_person("mallory")
        machine.as_root("chpasswd", stdin=f"alice:{PASSWORD}\nmallory:{PASSWORD}\n")
        lines = machine.read("/usr/lib/systemd/system/mcpwrap-gate.service").splitlines()
        sandbox = lines[lines.index("[Service]") : lines.index("[Install]")]
        kept = [line for line in sandbox if not NOT_OF_THE_SANDBOX.match(line)]
        assert "PrivateNetwork=yes" in kept
        run = f"ExecStart=/usr/bin/python3 -I {BED_AT}/tests/system/guest/polkit_tried.py $ARGS"
        kept += ["Type=oneshot", "EnvironmentFile=/run/tried.env", run]
        kept += ["StandardOutput=truncate:/run/tried.out", "StandardError=truncate:/run/tried.err"]
        machine.write("/run/systemd/system/mcpwrap-tried.service", "\n".join(kept) + "\n")
        machine.as_root("systemctl daemon-reload")
        approvers.put(machine)
        with approvers.ready(machine, "bob"):
            yield machine
