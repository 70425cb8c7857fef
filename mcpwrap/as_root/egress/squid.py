"""Squid instances: configuration reload that loses no connection, and certificate authorities.

A certificate authority has a key, a certificate, and the bundle that its servers trust.
"""

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mcpwrap.core.names import EGRESS_PORT
from mcpwrap.errors import McpwrapError
from mcpwrap.linux import accounts, root_files, tcp_listeners
from mcpwrap.linux.os_release import distribution
from mcpwrap.linux.systemd.systemctl import (
    SYSTEMCTL,
    ToolError,
    properties,
    run,
    run_for_all_output,
)
from mcpwrap.machine.nft_table import NFT
from mcpwrap.plan import paths

SQUID = "/usr/sbin/squid"
SETPRIV = "/usr/bin/setpriv"
OPENSSL = "/usr/bin/openssl"
_CA_DAYS = "3650"
# Passed to openssl, so that the openssl.cnf of the distribution has no effect.
_CA_REQUEST = """
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
_ERROR_PAGES = Path("/usr/share/squid/errors/templates")
_REFUSAL_PAGE = Path("/usr/lib/mcpwrap/squid/refused")
_HOLD_S = 30  # the kernel ends the hold then, even if this program was killed
_LOOK_EVERY_S = 0.01
# Faults that Squid prints of a configuration. It also repeats each directive, with any words.
_FAULTS = re.compile(
    r"^(?!.*\| Processing).*(?:\bERROR\b|\bFATAL\b|\bunrecognized:).*$", re.MULTILINE
)


def load(instance: str, text: str) -> None:
    """Have the instance run with this configuration. If Squid rejects it, the old one stays.

    Raises:
        McpwrapError: Squid rejects the text, or does not start with it.
    """
    file, unit = paths.proxy(instance), paths.proxy_unit(instance)
    candidate = f"{file}.new"
    root_files.replace(candidate, text)
    _make_pages(Path(file).parent / "errors")
    _expect_good(candidate, instance)
    Path(candidate).rename(file)
    if is_active(unit):
        reread(instance)
    run(SYSTEMCTL, "enable", "--quiet", "--now", "--", unit)


def reread(instance: str) -> None:
    """Have a running Squid reload its files. New connections wait meanwhile, and none fails.

    Raises:
        McpwrapError: its ports are not open again within 30 s.
    """
    wanted = _addresses(Path(paths.proxy(instance)).read_text())
    before = tcp_listeners.inodes(EGRESS_PORT)
    with _held(wanted):
        # Not the signal alone: the unit checks the file first, as Squid exits on a mistake in it.
        # Not ordered: the unit comes after mcpwrap-resolvers.service, which may be what waits here.
        run(SYSTEMCTL, "reload", "--job-mode=ignore-dependencies", "--", paths.proxy_unit(instance))
        give_up_at = time.monotonic() + _HOLD_S
        while not _is_renewed(wanted, before):
            if time.monotonic() > give_up_at:
                raise McpwrapError(
                    f"Squid did not open its ports again within {_HOLD_S} s",
                    where=paths.proxy_unit(instance),
                    fix=f"`journalctl -u {paths.proxy_unit(instance)}` has the reason",
                    code="E-EGRESS-SQUID-RELOAD",
                )
            time.sleep(_LOOK_EVERY_S)


def running() -> list[str]:
    """Return the running instances."""
    written = Path(paths.PROXY).glob("*.conf")
    instances = sorted(paths.names_in(map(str, written), paths.proxy))
    return [instance for instance in instances if is_active(paths.proxy_unit(instance))]


def is_active(unit: str) -> bool:
    """Return whether a unit is active."""
    return properties([unit], ["ActiveState"])[unit]["ActiveState"] == "active"


def make_ca(name: str) -> None:
    """Make a key that one kind of Squid can read, and the CA bundle that server `name` trusts."""
    kind = "proxy" if name == paths.SPLICE_CA else "intercept"
    folder = Path(paths.ca_key(name)).parent
    shutil.rmtree(folder, ignore_errors=True)  # left by an interrupted run
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    key, certificate = paths.ca_key(name), paths.ca_certificate(name)
    run(
        OPENSSL, "req", "-x509", "-new", "-nodes", "-days", _CA_DAYS, "-config", "/dev/stdin",
        "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-keyout", key, "-out", certificate,
        stdin=_CA_REQUEST.format(name=name),
    )  # fmt: skip
    os.chown(key, 0, accounts.gid_of(f"mcpwrap-{kind}") or 0)
    Path(key).chmod(0o640)
    Path(certificate).chmod(0o644)
    system = Path(distribution().system_cas)
    trusted = system.read_text() if system.exists() else ""
    # Last, because its existence means that the others exist.
    root_files.replace(paths.ca_bundle(name), trusted + Path(certificate).read_text())


def _make_pages(folder: Path) -> None:
    """Make the folder of error pages, one for every error of Squid; those of refusals are ours."""
    shutil.copytree(_ERROR_PAGES, folder, dirs_exist_ok=True)
    for page in ("ERR_ACCESS_DENIED", "ERR_FORWARDING_DENIED"):
        shutil.copyfile(_REFUSAL_PAGE, folder / page)


def _expect_good(candidate: str, instance: str) -> None:
    """Check Squid's output: its exit status is 0 where a bad pattern makes a deny rule empty."""
    account = paths.proxy_account(instance)
    ids = [f"--reuid={account}", f"--regid={account}", "--clear-groups"]
    failure: list[str] = []
    try:
        output = run_for_all_output(SETPRIV, *ids, "--", SQUID, "-k", "parse", "-f", candidate)
    except ToolError as error:
        output = error.said()
        failure = output.splitlines()[-1:]
    if faults := _FAULTS.findall(output) or failure:
        raise McpwrapError(
            f"Squid rejects it: {faults[0]}; the old configuration stays",
            where=candidate,
            fix=f"have Squid 5.7 or later ({distribution().install('squid')}); if it is, this "
            "is a bug in mcpwrap",
            code="E-EGRESS-SQUID-CONFIG",
        )


def _is_renewed(wanted: set[str], before: dict[str, int]) -> bool:
    """Return whether Squid has reloaded: it then has opened all its ports again, as new sockets."""
    now = tcp_listeners.inodes(EGRESS_PORT)
    return all(now.get(a) is not None and now[a] != before.get(a) for a in wanted)


def _addresses(text: str) -> set[str]:
    return set(re.findall(rf"^http_port ([0-9.]+):{EGRESS_PORT} ", text, re.MULTILINE))


@contextmanager
def _held(addresses: set[str]) -> Iterator[None]:
    """Have new connections to these addresses wait, but not those to other instances."""
    if not addresses:
        yield
        return
    run(NFT, _hold("add", [f"{address} timeout {_HOLD_S}s" for address in addresses]))
    try:
        yield
    finally:
        with suppress(ToolError):  # the timeout has removed it
            run(NFT, _hold("delete", addresses))


def _hold(verb: str, elements: Iterable[str]) -> str:
    return f"{verb} element inet mcpwrap reload_hold {{ {', '.join(elements)} }}"
