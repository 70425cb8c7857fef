"""Execution of programs of another architecture in a root. RUNS AS ROOT on the test host.

A user namespace has a table of binfmt_misc of its own since Linux 6.7: that of the host stays as it
is, and ends no program of the host. Source: Documentation/admin-guide/binfmt-misc.rst.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ARM64 = "arm64"
IDS = 65536  # of the accounts of a root, each as itself
# ELF of 64 bits, little-endian, an executable or a library, for the machine 183, which is AArch64;
# of the system's ABI and version any. F: the emulator is opened once, outside of each root. P: the
# program sees its own argv[0].
_REGISTERED = (
    r":mcpwrap-arm64:M:"
    r":\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    r":{}:PF"
)
_REGISTER = """
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
printf %s "$1" > /proc/sys/fs/binfmt_misc/register
"""


@contextmanager
def emulated(emulator: Path) -> Iterator[list[str]]:
    """Make a namespace in which `emulator` runs programs of arm64; yield the words to enter it.

    Its mounts are those of the host at this time.
    """
    hold = ["unshare", "--user", "--mount", "--propagation=private", "sh", "-c", "echo; read _"]
    pipe = subprocess.PIPE
    with subprocess.Popen(hold, stdin=pipe, stdout=pipe) as holder:  # ends with its input
        assert holder.stdout
        holder.stdout.readline()
        for ids in ("uid_map", "gid_map"):
            Path(f"/proc/{holder.pid}/{ids}").write_text(f"0 0 {IDS}\n")
        enter = ["nsenter", f"--target={holder.pid}", "--user", "--mount", "--"]
        line = _REGISTERED.format(emulator)
        subprocess.run([*enter, "sh", "-ec", _REGISTER, "sh", line], check=True)
        yield enter
