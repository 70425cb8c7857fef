"""Run slot of a test: the run supervisor under the account of the tests, in folders of a test.

slot_program.py ROOT [confined] <REQUEST >FRAMES
"""

import os
import sys

from mcpwrap.as_job import confinement, job_request, supervisor
from mcpwrap.as_job.frame_writer import FrameWriter
from mcpwrap.as_job.run_process import SlotFolders
from mcpwrap.as_job.supervisor import SlotSettings
from mcpwrap.linux.isolation import prctl
from mcpwrap.linux.process import descendants


def main(root: str, *options: str) -> None:
    """Execute one request."""
    prctl.adopt_orphans()
    slot = SlotSettings(
        interpreter=sys.executable if "broken" not in options else "/nonexistent",
        account="mcpj-test-0",
        # Never kill(2) with -1: the account has other processes.
        end_other_processes=descendants.end_all,
        confine=confinement.enter if "confined" in options else lambda: None,
        folders=SlotFolders(root),
    )
    supervisor.supervise(job_request.parse(sys.stdin.buffer.read()), FrameWriter(1), slot)


if __name__ == "__main__":
    os.umask(0o077)
    main(*sys.argv[1:])
