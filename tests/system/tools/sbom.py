"""Software bill of materials of a package: CycloneDX 1.6, as JSON (https://cyclonedx.org)."""

import hashlib
import uuid
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

SDNOTIFY = Path(__file__).resolve().parents[3] / "packaging/rpm/sdnotify.sha256"


def sbom(package: Path, version: str, wheels: Path, epoch: int) -> str:
    """Return the bill of a package file with the libraries of a folder of wheels, as JSON text.

    An .rpm also has sdnotify, from Debian. `epoch` is the time of the bill, in seconds of UTC. The
    same files give the same text.
    """
    digest = _sha256(package)
    whole = Component(
        name="mcpwrap",
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref="mcpwrap",
        hashes=_hashes(digest),
        licenses=[LicenseExpression("Apache-2.0")],
    )
    libraries = [*_libraries(wheels), *([_sdnotify()] if package.suffix == ".rpm" else [])]
    bom = Bom(components=libraries, serial_number=uuid.uuid5(uuid.NAMESPACE_URL, digest))
    bom.metadata.component = whole
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    bom.register_dependency(whole, libraries)
    text: str = JsonV1Dot6(bom).output_as_string(indent=1)
    return f"{text}\n"


def _libraries(wheels: Path) -> Iterator[Component]:
    for wheel in sorted(wheels.glob("*.whl")):
        metadata = _metadata(wheel)
        name = metadata["Name"].lower().replace("_", "-").replace(".", "-")
        hashes = _hashes(_sha256(wheel))
        yield _library(name, metadata["Version"], hashes, _licenses(metadata))


def _sdnotify() -> Component:
    """Return the library whose one file is Debian's: the digest is that of the file."""
    digest, path = SDNOTIFY.read_text().split()
    whole = _library("sdnotify", "0.3.2", [], [LicenseExpression("MIT")])
    whole.components = [Component(name=path, type=ComponentType.FILE, hashes=_hashes(digest))]
    return whole


def _library(
    name: str,
    version: str,
    hashes: list[HashType],
    licenses: list[LicenseExpression | DisjunctiveLicense],
) -> Component:
    purl = PackageURL("pypi", None, name, version)
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=purl.to_string(),
        purl=purl,
        hashes=hashes,
        licenses=licenses,
    )


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(path).decode())


def _licenses(metadata: Message) -> list[LicenseExpression | DisjunctiveLicense]:
    """Return what the author states: PEP 639's expression, classifiers, or the older field."""
    if expression := metadata["License-Expression"]:
        return [LicenseExpression(expression)]
    classifiers = metadata.get_all("Classifier") or []
    names = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License :: ")]
    older = [text] if (text := metadata["License"]) else []
    return [DisjunctiveLicense(name=name) for name in names or older]


def _hashes(sha256: str) -> list[HashType]:
    return [HashType(alg=HashAlgorithm.SHA_256, content=sha256)]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
