"""Prerequisites of egress on this machine (Squid, OpenSSL), checked before anything is made."""

from pathlib import Path

from mcpwrap.config.model import Config
from mcpwrap.errors import UsageError
from mcpwrap.plan import paths

# By what `apply` and the units run; `squid` without OpenSSL has no `security_file_certgen`.
_NEEDED = {
    "/usr/sbin/squid": "squid-openssl",
    paths.CERTGEN: "squid-openssl",
    "/usr/share/squid/errors/templates": "squid-openssl",
    "/usr/bin/openssl": "openssl",
}


def expect_squid(config: Config) -> None:
    """Refuse servers with `egress` on a machine that has no Squid to judge it.

    Raises:
        UsageError: with the package that is missing.
    """
    wanting = [name for name, server in config.servers.items() if server.egress]
    missing = [path for path in _NEEDED if not Path(path).exists()]
    if wanting and missing:
        raise UsageError(
            f"`egress` needs {missing[0]}, which is not there; nothing was changed",
            where=f"[mcp_servers.{wanting[0]}.mcpwrap], egress",
            fix=f"`apt install {_NEEDED[missing[0]]}`",
        )
