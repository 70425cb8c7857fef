"""python-prctl that writes each call to standard error. Runs inside the machine, in its place.

Its table of capabilities ends at CAP_AUDIT_READ, as that of a build for Linux before 5.8.
"""

import os
from collections.abc import Callable
from pathlib import Path

REAL = "/opt/prctl.py"
LAST_CAPABILITY = 37

module = globals()
exec(Path(REAL).read_text(), module)
module["ALL_CAPS"] = [known for known in module["ALL_CAPS"] if known <= LAST_CAPABILITY]


def _recorded(name: str) -> Callable[[int], object]:
    real = module[name]

    def call(value: int) -> object:
        if name == "capbset_drop" and value > LAST_CAPABILITY:
            raise ValueError("Unknown capability")
        os.write(2, f"prctl.{name}({value:d})\n".encode())
        return real(value)

    return call


for each in (
    "set_pdeathsig",
    "set_dumpable",
    "capbset_drop",
    "set_child_subreaper",
    "set_no_new_privs",
):
    module[each] = _recorded(each)
