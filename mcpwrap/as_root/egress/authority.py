"""Certificate authorities of Squid's listeners: key, certificate, trusted bundle."""

import os
import shutil
from pathlib import Path

from mcpwrap.linux import accounts, root_files
from mcpwrap.linux.systemd.systemctl import run
from mcpwrap.plan import paths

OPENSSL = "/usr/bin/openssl"
_DAYS = "3650"
# Of its own, so that what a distribution has in openssl.cnf decides nothing.
_REQUEST = """
[req]
distinguished_name = name
x509_extensions = authority
prompt = no
[name]
CN = mcpwrap {name}
[authority]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
"""


def make(name: str) -> None:
    """Make a key that one kind of Squid can read, and what the server `name` is to trust."""
    kind = "proxy" if name == paths.SPLICE_CA else "intercept"
    folder = Path(paths.ca_key(name)).parent
    shutil.rmtree(folder, ignore_errors=True)  # of one that was broken off
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    key, certificate = paths.ca_key(name), paths.ca_certificate(name)
    run(
        OPENSSL, "req", "-x509", "-new", "-nodes", "-days", _DAYS, "-config", "/dev/stdin",
        "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-keyout", key, "-out", certificate,
        stdin=_REQUEST.format(name=name),
    )  # fmt: skip
    os.chown(key, 0, accounts.gid_of(f"mcpwrap-{kind}") or 0)
    Path(key).chmod(0o640)
    Path(certificate).chmod(0o644)
    system = Path(paths.SYSTEM_CAS)
    trusted = system.read_text() if system.exists() else ""
    # Last, because its being there says that all is.
    root_files.replace(paths.ca_bundle(name), trusted + Path(certificate).read_text())
