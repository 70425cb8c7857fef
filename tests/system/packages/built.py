"""Content of a package file."""

import io
import struct
import subprocess
import tarfile
from pathlib import Path

# e_machine of an ELF header: elf(5).
ELF_MACHINES = {62: "amd64", 183: "arm64"}


def deb_files(deb: Path) -> dict[str, bytes]:
    """Return the files of a .deb by their paths, without links and folders."""
    packed = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as tar:
        return {
            each.name.removeprefix("./"): file.read()
            for each in tar
            if each.isreg() and (file := tar.extractfile(each))
        }


def deb_field(deb: Path, name: str) -> str:
    """Return a field of a .deb's control file."""
    done = subprocess.run(["dpkg-deb", "-f", deb, name], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def elf_arch(content: bytes) -> str:
    """Return the architecture of an ELF file, in Debian's words."""
    assert content[:4] == b"\x7fELF"
    (machine,) = struct.unpack_from("<H", content, 18)
    return ELF_MACHINES[machine]
