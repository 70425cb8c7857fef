"""Registries of npm and PyPI.

Both have bed-echo, an MCP server of one tool; PyPI has packages for runs of code, too.
"""

import base64
import hashlib
import io
import json
import tarfile
from pathlib import Path

from tests.system.bed import internet_map
from tests.system.bed.origins import python_packages
from tests.system.bed.origins.python_packages import PublishedFile
from tests.system.bed.origins.wheels import Wheel

NAME, VERSION = "bed-echo", "1.0.0"
HERE = Path(__file__).parent


def published() -> list[PublishedFile]:
    """Return the files of the index of PyPI."""
    return [_echo(), *python_packages.all_files()]


def files(of_index: list[PublishedFile]) -> dict[str, bytes]:
    """Return pages and files of the two registries, by host and path."""
    tarball, npm = _tarball(), internet_map.NPM
    return {
        **python_packages.pages(of_index),
        f"{npm}/{NAME}": json.dumps(_metadata(tarball)).encode(),
        f"{npm}/{NAME}-{VERSION}.tgz": tarball,
    }


def _package() -> dict[str, object]:
    return {"name": NAME, "version": VERSION, "bin": {NAME: "echo_server.js"}}


def _metadata(tarball: bytes) -> dict[str, object]:
    digest = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    url = f"https://{internet_map.NPM}/{NAME}-{VERSION}.tgz"
    version = {**_package(), "dist": {"tarball": url, "integrity": f"sha512-{digest}"}}
    return {"name": NAME, "dist-tags": {"latest": VERSION}, "versions": {VERSION: version}}


def _tarball() -> bytes:
    buffer = io.BytesIO()
    members = {
        "package.json": json.dumps(_package()).encode(),
        "echo_server.js": (HERE / "echo_server.js").read_bytes(),
    }
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _echo() -> PublishedFile:
    wheel = Wheel(
        name=NAME,
        version=VERSION,
        members={"bed_echo.py": (HERE / "echo_server.py").read_bytes()},
        scripts={NAME: "bed_echo:main"},
    )
    return PublishedFile(project=NAME, name=wheel.file_name, content=wheel.content())
