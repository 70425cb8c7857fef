"""Registries of npm and PyPI, each with one package: bed-echo, an MCP server of one tool."""

import base64
import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

from tests.system.bed import internet_map

NAME, VERSION = "bed-echo", "1.0.0"
HERE = Path(__file__).parent
WHEEL = f"bed_echo-{VERSION}-py3-none-any.whl"
DIST_INFO = f"bed_echo-{VERSION}.dist-info"
METADATA = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n"


def files() -> dict[str, bytes]:
    """Return the files of the two hosts, by host and path."""
    tarball, wheel = _tarball(), _wheel()
    npm, pypi = internet_map.NPM, internet_map.PYPI
    digest = hashlib.sha256(wheel).hexdigest()
    page = f'<!DOCTYPE html><a href="/files/{WHEEL}#sha256={digest}">{WHEEL}</a>'
    return {
        f"{npm}/{NAME}": json.dumps(_metadata(tarball)).encode(),
        f"{npm}/{NAME}-{VERSION}.tgz": tarball,
        f"{pypi}/simple/{NAME}/": page.encode(),
        f"{pypi}/files/{WHEEL}": wheel,
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


def _wheel() -> bytes:
    """A wheel as in PEP 427, which requires no hash of the file that lists the hashes."""
    members = {
        "bed_echo.py": (HERE / "echo_server.py").read_bytes(),
        f"{DIST_INFO}/METADATA": METADATA.encode(),
        f"{DIST_INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{DIST_INFO}/entry_points.txt": b"[console_scripts]\nbed-echo = bed_echo:main\n",
    }
    record = [f"{name},{_record_hash(content)},{len(content)}" for name, content in members.items()]
    members[f"{DIST_INFO}/RECORD"] = "\n".join([*record, f"{DIST_INFO}/RECORD,,\n"]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _record_hash(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return f"sha256={digest.decode().rstrip('=')}"
