"""Packages of the bed's index for runs of code: usual ones, and one for each way to fail."""

import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.system.bed import internet_map
from tests.system.bed.origins.wheels import Wheel

TRAP = (Path(__file__).parent / "trap.py").read_bytes()
MIB = 1024**2
LARGE_BYTES = 10 * MIB  # on disk; the wheel of zeros is small
MODULES = 40  # of the package bed-many
HELD = ("1", "2", "3", "4", "5")  # versions of bed-held, each for one story


@dataclass(frozen=True, kw_only=True)
class PublishedFile:
    """File of a project as the index lists it.

    `digest` is what the index states for it. The first download of one that `is_held` stops in the
    middle until the next one begins.
    """

    project: str
    name: str
    content: bytes
    digest: str = ""
    host: str = internet_map.PYPI
    yanked: str = ""
    requires_python: str = ""
    metadata: bytes = b""  # served beside the file: PEP 658
    is_held: bool = False

    @property
    def path(self) -> str:
        """Host and path of the file."""
        return f"{self.host}/files/{self.name}"

    def link(self) -> str:
        """Return its line on the project's page: the simple API, PEP 503 and 592."""
        digest = self.digest or hashlib.sha256(self.content).hexdigest()
        attributes = ""
        if self.yanked:
            attributes += f' data-yanked="{self.yanked}"'
        if self.requires_python:
            attributes += f' data-requires-python="{self.requires_python}"'
        if self.metadata:
            of_metadata = hashlib.sha256(self.metadata).hexdigest()
            attributes += f' data-core-metadata="sha256={of_metadata}"'
        return f'<a href="https://{self.path}#sha256={digest}"{attributes}>{self.name}</a>'


def pages(published: list[PublishedFile]) -> dict[str, bytes]:
    """Return the pages of the index and the files, by host and path."""
    found: dict[str, bytes] = {}
    links: dict[str, str] = {}
    for file in published:
        links[file.project] = f"{links.get(file.project, '')}\n{file.link()}"
        found[file.path] = file.content
        if file.metadata:
            found[f"{file.path}.metadata"] = file.metadata
    for project, text in links.items():
        page = f"<!DOCTYPE html>{text}".encode()
        found[f"{internet_map.PYPI}/simple/{project}/"] = page
    return found


def usual() -> list[PublishedFile]:
    """Return packages that can be installed."""
    needs = b"import bed_base\n\ndef answer():\n    return f'42 by {bed_base.VERSION}'\n"
    many = {f"bed_many/m{number}.py": _module(number) for number in range(MODULES)}
    many["bed_many/__init__.py"] = b""
    many["bed_many/of_python_2.py"] = b"print 'not valid'\n"  # as some packages have
    zeros = {"bed_large/zeros": bytes(LARGE_BYTES), "bed_large/__init__.py": b""}
    return [
        *(_of(_base(version)) for version in ("1.0.0", "2.0.0")),
        _of(Wheel(name="bed-needs", members={"bed_needs.py": needs}, requires=("bed-base<2",))),
        _of(Wheel(name="bed-many", members=many)),
        *(_of(Wheel(name="bed-large", version=v, members=zeros)) for v in ("1.0.0", "2.0.0")),
        *(_held(version) for version in HELD),
        _of(_yankable("1.0.0")),
    ]


def refused() -> list[PublishedFile]:
    """Return packages that no run gets, each for a reason of its own."""
    wrong = _simple("bed-wrong-hash")
    windows = _simple("bed-elsewhere", tag="cp311-cp311-win_amd64")
    stray = f"bed-base @ https://{internet_map.NPM}/bed_base-1.0.0-py3-none-any.whl"
    larger = {"bed_larger/zeros": bytes(2 * LARGE_BYTES)}
    return [
        _source_only(),
        _of(_yankable("2.0.0"), yanked="deletes files"),
        _of(wrong, digest=hashlib.sha256(b"another file").hexdigest()),
        _of(windows),
        _of(_simple("bed-future"), requires_python=">=3.99"),
        _of(_simple("bed-stray"), host=internet_map.NPM),
        _of(_simple("bed-url", requires=(stray,))),
        _of(Wheel(name="bed-larger", members=larger)),
        _of(_simple("bed-climbing", members={"../../climbed": b"climbed"})),
    ]


def hostile() -> list[PublishedFile]:
    """Return packages that would execute code where they are installed, and not imported."""
    trapped = {
        "bed_trap.py": b"",
        "bed_trap_note.py": TRAP,
        "bed_trap.pth": b"import bed_trap_note; bed_trap_note.leave('pth')\n",
        "sitecustomize.py": b"import bed_trap_note\nbed_trap_note.leave('sitecustomize')\n",
        # What the compiler and uv's look at the interpreter import themselves.
        "compileall.py": b"import bed_trap_note\nbed_trap_note.leave('compileall')\n",
    }
    links = {"bed_linking/shadow": "/etc/shadow", "bed_linking/up": "../../.."}
    linking = Wheel(name="bed-linking", members={"bed_linking/__init__.py": b""}, links=links)
    return [_of(Wheel(name="bed-trap", members=trapped)), _of(linking)]


def all_files() -> list[PublishedFile]:
    """Return all of them."""
    return [*usual(), *refused(), *hostile()]


def _of(
    wheel: Wheel,
    *,
    digest: str = "",
    yanked: str = "",
    requires_python: str = "",
    host: str = internet_map.PYPI,
) -> PublishedFile:
    return PublishedFile(
        project=wheel.name,
        name=wheel.file_name,
        content=wheel.content(),
        digest=digest,
        yanked=yanked,
        requires_python=requires_python,
        host=host,
    )


def _simple(
    name: str,
    *,
    members: dict[str, bytes] | None = None,
    requires: tuple[str, ...] = (),
    tag: str = "py3-none-any",
) -> Wheel:
    module = {f"{name.replace('-', '_')}.py": b""}
    return Wheel(name=name, members=module | (members or {}), requires=requires, tag=tag)


def _base(version: str) -> Wheel:
    module = f"VERSION = 'bed-base {version}'\n".encode()
    return Wheel(
        name="bed-base",
        version=version,
        members={"bed_base.py": module + b"\ndef main():\n    print(VERSION)\n"},
        scripts={"bed-base": "bed_base:main"},
    )


def _yankable(version: str) -> Wheel:
    members = {"bed_yanked.py": f"VERSION = '{version}'\n".encode()}
    return Wheel(name="bed-yanked", version=version, members=members)


def _module(number: int) -> bytes:
    return f"def number():\n    return {number}\n".encode()


def _held(version: str) -> PublishedFile:
    """Return a package whose metadata is at once there, and whose wheel is not."""
    wheel = Wheel(name="bed-held", version=version, members={"bed_held.py": b""})
    return PublishedFile(
        project=wheel.name,
        name=wheel.file_name,
        content=wheel.content(),
        metadata=wheel.metadata,
        is_held=True,
    )


def _source_only() -> PublishedFile:
    """Return a source distribution that brings its build backend: a build would execute it."""
    top = "bed_source-1.0.0"
    backend = TRAP + b"\nleave('build')\n"
    project = b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    metadata = b"Metadata-Version: 2.1\nName: bed-source\nVersion: 1.0.0\n"
    members = {"PKG-INFO": metadata, "backend.py": backend, "pyproject.toml": project}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return PublishedFile(project="bed-source", name=f"{top}.tar.gz", content=buffer.getvalue())
