"""Approver of every pending call, until the end. Runs in the machine as an account."""

import time

from mcpwrap.core.wire.approval_socket import DecideRequest, Verdict
from mcpwrap.errors import McpwrapError
from mcpwrap.gate_client.approvals import ApprovalConnection
from tests.system.guest.soak.model import STOP

AGAIN_S = 0.2


def serve() -> None:
    """Approve every pending call, as long as the gate lives."""
    with ApprovalConnection() as door:
        listing = door.watch()
        while True:
            for pending in listing.pending:
                with ApprovalConnection() as other:
                    digest = other.show(pending.id).digest
                    other.decide(
                        DecideRequest(id=pending.id, digest=digest, verdict=Verdict("approve"))
                    )
            listing = door.next_listing()


def main() -> None:
    while not STOP.exists():
        try:
            serve()
        except (McpwrapError, OSError):
            time.sleep(AGAIN_S)  # the gate is gone, or another answer came first


if __name__ == "__main__":
    main()
