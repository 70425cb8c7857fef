"""Wheels made in memory: the binary distribution format, PEP 427."""

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field

ANYWHERE = "py3-none-any"


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """Wheel of a distribution. `links` is the target of each symbolic link in it."""

    name: str
    version: str = "1.0.0"
    members: Mapping[str, bytes]
    links: Mapping[str, str] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    scripts: Mapping[str, str] = field(default_factory=dict)
    tag: str = ANYWHERE

    @property
    def file_name(self) -> str:
        """Name of its file, which an installer parses."""
        return f"{self._escaped}-{self.version}-{self.tag}.whl"

    @property
    def metadata(self) -> bytes:
        """Its core metadata."""
        lines = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in self.requires]
        return ("\n".join(lines) + "\n").encode()

    def content(self) -> bytes:
        """Return the file. PEP 427 requires no hash of the file that lists the hashes."""
        info = f"{self._escaped}-{self.version}.dist-info"
        purelib = "true" if self.tag == ANYWHERE else "false"
        about = f"Wheel-Version: 1.0\nRoot-Is-Purelib: {purelib}\nTag: {self.tag}\n"
        members = {
            **self.members,
            f"{info}/METADATA": self.metadata,
            f"{info}/WHEEL": about.encode(),
        }
        if self.scripts:
            lines = [f"{name} = {place}" for name, place in self.scripts.items()]
            text = "\n".join(["[console_scripts]", *lines, ""])
            members[f"{info}/entry_points.txt"] = text.encode()
        linked = {name: target.encode() for name, target in self.links.items()}
        record = [f"{name},{_record_hash(c)},{len(c)}" for name, c in (members | linked).items()]
        members[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,\n"]).encode()
        return _archive(members, linked)

    @property
    def _escaped(self) -> str:
        return self.name.replace("-", "_")


def _archive(members: Mapping[str, bytes], links: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            # With the time that a ZipInfo has by default: equal wheels are equal files.
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
        for name, target in links.items():
            link = zipfile.ZipInfo(name)
            link.create_system = 3  # Unix: the upper half of the attributes is a mode
            link.external_attr = 0o120777 << 16
            archive.writestr(link, target)
    return buffer.getvalue()


def _record_hash(content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return f"sha256={digest.decode().rstrip('=')}"
