#!/usr/bin/python3
"""Installation of mcpwrap's files under DESTDIR: the one list of files and destinations.

Called by debian/rules; `packaging/stage.py DESTDIR SITE`, where SITE is a folder of unpacked
libraries for /usr/lib/mcpwrap/site. They may be another Python's: those with which this program
makes the schemas are on PYTHONPATH.
"""

import json
import shutil
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
LIB = "usr/lib/mcpwrap"
LIBEXEC = "usr/libexec/mcpwrap"
EXAMPLES = "usr/share/doc/mcpwrap/examples"
UNITS = "usr/lib/systemd/system"
USER_UNITS = "usr/lib/systemd/user"
SCHEMA = "usr/share/mcpwrap/schema"
POLKIT = "usr/share/polkit-1/actions"
# Code, the page's templates and files, and the default policy.
SUFFIXES = (".py", ".html", ".css", ".js", ".yaml", ".json")
KINDS = ("proxy", "intercept")  # of Squid, whose units differ in the name only
# Module whose main() each program runs.
PROGRAMS = {
    "usr/bin/mcpwrap": "mcpwrap.cli.main",
    f"{LIBEXEC}/mcpwrap-root": "mcpwrap.as_root.main",
    f"{LIBEXEC}/mcpwrap-proposal": "mcpwrap.as_nobody.proposal_reader",
    f"{LIBEXEC}/mcpwrap-mint": "mcpwrap.as_root.secrets.mint",
    f"{LIBEXEC}/mcpwrap-audit": "mcpwrap.as_root.audit_epochs",
    f"{LIBEXEC}/mcpwrap-ws": "mcpwrap.as_root.workspaces.mount",
    f"{LIBEXEC}/mcpwrap-resolvers": "mcpwrap.as_root.egress.resolvers",
    f"{LIBEXEC}/mcpwrap-watch": "mcpwrap.as_root.egress.nft_watchdog",
    f"{LIBEXEC}/mcpwrap-try-session": "mcpwrap.as_agent.session_probe",
    f"{LIBEXEC}/mcpwrap-try-reach": "mcpwrap.as_wrapper.network_probe",
    f"{LIBEXEC}/mcpwrap-gate": "mcpwrap.as_gate.main",
    f"{LIBEXEC}/mcpwrap-gate-reload": "mcpwrap.as_gate.reload",
    f"{LIBEXEC}/mcpwrap-wrapper": "mcpwrap.as_wrapper.main",
    f"{LIBEXEC}/mcpwrap-front": "mcpwrap.as_front.main",
    f"{LIBEXEC}/mcpwrap-front-reload": "mcpwrap.as_front.reload",
    f"{LIBEXEC}/mcpwrap-squid": "mcpwrap.as_squid.main",
    f"{LIBEXEC}/mcpwrap-webhook": "mcpwrap.as_webhook.main",
    f"{LIBEXEC}/mcpwrap-web": "mcpwrap.as_web.main",
    f"{LIBEXEC}/mcpwrap-http": "mcpwrap.as_http.main",
    f"{LIBEXEC}/mcpwrap-worker": "mcpwrap.as_worker.main",
    f"{LIBEXEC}/mcpwrap-remote": "mcpwrap.as_wrapper.remote.main",
    f"{LIBEXEC}/mcpwrap-python": "mcpwrap.as_python.main",
    f"{LIBEXEC}/mcpwrap-hub": "mcpwrap.as_hub.main",
    f"{LIBEXEC}/mcpwrap-next": "mcpwrap.as_wrapper.next_version.main",
}
# Programs that start for each run of code: -S, because site-packages takes longer than the rest.
QUICK_PROGRAMS = {f"{LIBEXEC}/mcpwrap-job": "mcpwrap.as_job.main"}
LAUNCHER = """\
#!/usr/bin/python3 -I
import sys

sys.path[:0] = ["/usr/lib/mcpwrap", "/usr/lib/mcpwrap/site"]
from {module} import main

sys.exit(main())
"""
QUICK_LAUNCHER = """\
#!/usr/bin/python3 -IS
import sys

sys.path.insert(0, "/usr/lib/mcpwrap")
from {module} import main

sys.exit(main())
"""
FILES = [
    ("mcpwrap/as_agent/stub.py", "usr/bin/mcpwrap-connect", 0o755),
    ("nftables/mcpwrap.nft", f"{LIB}/nftables/mcpwrap.nft", 0o644),
    ("squid/common.conf", f"{LIB}/squid/common.conf", 0o644),
    ("squid/intercept.conf", f"{LIB}/squid/intercept.conf", 0o644),
    ("squid/path.sed", f"{LIB}/squid/path.sed", 0o644),
    ("squid/refused", f"{LIB}/squid/refused", 0o644),
    ("squid/last.conf", f"{LIB}/squid/last.conf", 0o644),
    ("packaging/stock-squid.conf", f"{UNITS}/squid.service.d/mcpwrap.conf", 0o644),
    ("packaging/catalog", "usr/lib/systemd/catalog/mcpwrap.catalog", 0o644),
    ("packaging/logrotate", "etc/logrotate.d/mcpwrap", 0o644),
    ("packaging/sysusers.d/mcpwrap.conf", "usr/lib/sysusers.d/mcpwrap.conf", 0o644),
    ("packaging/polkit/org.mcpwrap.policy", f"{POLKIT}/org.mcpwrap.policy", 0o644),
    ("packaging/tmpfiles.d/mcpwrap.conf", "usr/lib/tmpfiles.d/mcpwrap.conf", 0o644),
    ("examples/config.toml", f"{EXAMPLES}/config.toml", 0o644),
]


def put(text: str, target: Path, mode: int) -> None:
    """Write one file with its folders."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    target.chmod(mode)


def put_units(destdir: Path) -> None:
    """Stage the units of the system, and those of a person's session."""
    for unit in sorted((TOP / "units/user").iterdir()):
        put(unit.read_text(), destdir / USER_UNITS / unit.name, 0o644)
    for unit in sorted((TOP / "units").glob("mcpwrap*")):
        for kind in KINDS if "KIND" in unit.name else ("",):
            put(unit.read_text(), destdir / UNITS / unit.name.replace("KIND", kind), 0o644)


def put_schemas(destdir: Path) -> None:
    """Stage the JSON Schemas, which the code makes."""
    sys.path.insert(0, str(TOP))
    from mcpwrap.config.json_schema import SCHEMAS  # noqa: PLC0415 - on that path

    for kind, schema in SCHEMAS.items():
        put(f"{json.dumps(schema(), indent=1)}\n", destdir / SCHEMA / f"{kind}.json", 0o644)


def main(destdir: Path, site: Path) -> None:
    """Stage all files."""
    for program, module in PROGRAMS.items():
        put(LAUNCHER.format(module=module), destdir / program, 0o755)
    for program, module in QUICK_PROGRAMS.items():
        put(QUICK_LAUNCHER.format(module=module), destdir / program, 0o755)
    for source, target, mode in FILES:
        put((TOP / source).read_text(), destdir / target, mode)
    put_units(destdir)
    put_schemas(destdir)
    for policy in sorted((TOP / "examples/policies").iterdir()):
        put(policy.read_text(), destdir / EXAMPLES / "policies" / policy.name, 0o644)
    for source in sorted((TOP / "mcpwrap").rglob("*")):
        if source.suffix in SUFFIXES:
            put(source.read_text(), destdir / LIB / source.relative_to(TOP), 0o644)
    # Command line tools of the libraries are left out.
    drop = shutil.ignore_patterns("bin", "__pycache__", "*.pyi", "py.typed", "tests")
    shutil.copytree(site, destdir / LIB / "site", ignore=drop)
    (destdir / "etc/mcpwrap/conf.d").mkdir(parents=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
