"""Small file system under a folder of a machine, and its filling to the last block."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed.machine import Machine

# On the host's disk: a machine's own folders are in memory, which cannot back these file systems.
IMAGE = "/home/small-disk.img"
KINDS = {  # by the program that makes it; the smallest size that each makes without a confirmation
    "ext4": (["mke2fs", "-q", "-F", "-t", "ext4", "-m", "5"], "64M"),
    "xfs": (["mkfs.xfs", "-q", "-f"], "300M"),
    "btrfs": (["mkfs.btrfs", "-q", "-f"], "128M"),
}
_LOOP_MAJOR = 7  # Documentation/admin-guide/devices.txt
_NODES = f"""[ -e /dev/loop-control ] || mknod /dev/loop-control c 10 237
for n in $(seq 0 63); do [ -e /dev/loop$n ] || mknod /dev/loop$n b {_LOOP_MAJOR} $n; done"""


@contextmanager
def under(machine: Machine, folder: str, kind: str) -> Iterator[None]:
    """Move a folder with its content to a file system of this kind, for the time of the block.

    Data written there is lost afterwards. The caller restarts processes that run meanwhile.
    """
    maker, size = KINDS[kind]
    image = machine.path(IMAGE)
    subprocess.run(["truncate", "-s", size, image], check=True)
    subprocess.run([*maker, image], check=True, capture_output=True)
    machine.look(
        f"{_NODES}; set -e; mkdir -p /run/small; mount -o loop {IMAGE} /run/small;"
        f"cp -a {folder}/. /run/small; umount /run/small; mount -o loop {IMAGE} {folder}"
    )
    try:
        yield
    finally:
        machine.look(f"umount --lazy {folder}; rm -f {IMAGE}")


def fill(machine: Machine, folder: str) -> None:
    """Fill all free space there, root's reserve too, in pieces of ever fewer bytes."""
    assert machine.call("greed", "fill_up", f"{folder}/.fill") == "No space left on device"


def empty(machine: Machine, folder: str) -> None:
    """Free the space."""
    machine.look(f"rm -f {folder}/.fill*; sync -f {folder}")
