"""Package index with wheels of distributions that are installed. Runs inside the machine.

A wheel is made of the files that pip has installed (PEP 427), and the index has the pages of PEP
503. So a run can require a package of PyPI on the bed's internet, which has no PyPI.
"""

import base64
import hashlib
import http.server
import importlib.metadata
import sys
import tempfile
import zipfile
from functools import partial
from importlib.metadata import Distribution
from pathlib import Path

LEFT_OUT = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json")  # which the installer has added


def wheel(distribution: Distribution, folder: Path) -> Path:
    """Write a wheel of this distribution, which must be pure Python; return its path."""
    name, version = distribution.name.replace("-", "_"), distribution.version
    path = folder / f"{name}-{version}-py3-none-any.whl"
    record, of_record = "", f"{name}-{version}.dist-info/RECORD"
    with zipfile.ZipFile(path, "w") as archive:
        for file in distribution.files or ():
            if file.name in LEFT_OUT or file.suffix == ".pyc" or ".." in file.parts:
                continue
            content = file.read_binary()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
            record += f"{file},sha256={digest.rstrip('=')},{len(content)}\n"
            archive.writestr(str(file), content)
        archive.writestr(of_record, f"{record}{of_record},,\n")
    return path


def write(names: list[str], folder: Path) -> None:
    """Write an index of these distributions."""
    (folder / "files").mkdir()
    for name in names:
        path = wheel(importlib.metadata.distribution(name), folder / "files")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        link = f'<a href="/files/{path.name}#sha256={digest}">{path.name}</a>'
        page = folder / "simple" / name / "index.html"
        page.parent.mkdir(parents=True)
        page.write_text(f"<!DOCTYPE html>{link}")


def main(port: str, *names: str) -> None:
    """Serve the index until it is killed."""
    with tempfile.TemporaryDirectory() as folder:
        write(list(names), Path(folder))
        handler = partial(http.server.SimpleHTTPRequestHandler, directory=folder)
        http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
