"""Program of `mcpwrap-resolvers.service`: opens the packet rules for Squid's DNS resolvers.

It runs as root at boot, and whenever /etc/resolv.conf changes: mcpwrap-resolvers.path starts it.
"""

import ipaddress
import os
import sys
from pathlib import Path

from mcpwrap.as_root.egress import squid
from mcpwrap.as_root.lock import in_turn
from mcpwrap.errors import McpwrapError, file_error
from mcpwrap.linux import root_files
from mcpwrap.linux.systemd.stderr_log import log_line
from mcpwrap.linux.systemd.systemctl import run
from mcpwrap.machine.nft_table import NFT
from mcpwrap.plan import paths

RESOLV_CONF = Path("/etc/resolv.conf")


def main() -> int:
    """Read the file once and update the rules. Exit status: 0 done or nothing to do, 1 failed."""
    os.umask(0o022)
    try:
        with in_turn():
            _update()
    except (McpwrapError, OSError) as error:
        failure = file_error(error) if isinstance(error, OSError) else error
        log_line(f"mcpwrap: {failure}")
        return 1
    return 0


def _update() -> None:
    text = elements(RESOLV_CONF.read_text(errors="replace") if RESOLV_CONF.exists() else "")
    rules = Path(paths.RESOLVERS)
    if rules.exists() and rules.read_text() == text:
        return
    rules.unlink(missing_ok=True)  # written last: after an interruption, the next run repeats all
    run(NFT, "-f", "-", stdin=text)
    for instance in squid.running():
        squid.reread(instance)
    root_files.replace(paths.RESOLVERS, text)


def elements(resolv_conf: str) -> str:
    """Return the elements for these resolvers; without any, for the default of resolv.conf(5)."""
    by_family: dict[int, list[str]] = {4: [], 6: []}
    for line in resolv_conf.splitlines():
        match line.split():
            case ["nameserver", untrusted_address, *_]:
                try:
                    address = ipaddress.ip_address(untrusted_address.partition("%")[0])
                except ValueError:
                    continue
                by_family[address.version].append(str(address))
            case _:
                pass
    if not any(by_family.values()):
        by_family[4] = ["127.0.0.1"]
    lines = []
    for family, found in by_family.items():
        lines.append(f"flush set inet mcpwrap resolvers{family}")
        if found:
            wanted = ", ".join(sorted(set(found)))
            lines.append(f"add element inet mcpwrap resolvers{family} {{ {wanted} }}")
    return "\n".join(["# Written by mcpwrap-resolvers.service.", *lines, ""])


if __name__ == "__main__":
    sys.exit(main())
