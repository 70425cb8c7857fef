"""Query of the gate to polkit, about one call. Runs inside the machine, in the gate's sandbox.

Its arguments are a process, its start and its account, and how long to wait, in seconds.
"""

import json
import sys

sys.path.insert(0, "/usr/lib/mcpwrap/site")
sys.path.insert(0, "/usr/lib/mcpwrap")

from mcpwrap.linux.polkit import Pkcheck, is_authorised

DETAILS = {
    "id": "7f3a", "tool": "write_query\x1b[2J", "server": "sqlite", "agent": "alice",
}  # fmt: skip

if __name__ == "__main__":
    pid, start, uid, patience_s = sys.argv[1:]
    pkcheck = Pkcheck(patience_s=float(patience_s))
    print(json.dumps(is_authorised(int(pid), int(start), int(uid), DETAILS, pkcheck)))
