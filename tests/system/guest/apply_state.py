"""State that `mcpwrap apply` leaves, as JSON. Runs inside the machine, as root."""

import json
import pwd
import re
import subprocess
from pathlib import Path
from typing import Any

KEPT = Path("/var/lib/mcpwrap")
PREFIX = "mcpw-"
LIST_SET = ["nft", "-n", "list", "set", "inet", "mcpwrap", "wrapped"]


def seen() -> dict[str, Any]:
    """Return the UIDs of accounts and packet rules, and the names that gate and root have."""
    accounts = [entry for entry in pwd.getpwall() if entry.pw_name.startswith(PREFIX)]
    rules = subprocess.run(LIST_SET, stdout=subprocess.PIPE, text=True, check=False).stdout
    gate = KEPT / "gate.json"
    guests = json.loads(gate.read_text())["by_server"] if gate.exists() else {}
    return {
        "accounts": {entry.pw_name.removeprefix(PREFIX): entry.pw_uid for entry in accounts},
        "refused": [int(uid) for uid in re.findall(r"\b[23][0-9]{4}\b", rules)],
        "guests": {name: guest["uids"] for name, guest in guests.items()},
        "specs": [path.stem for path in (KEPT / "servers").glob("*.json")],
    }
