#!/usr/bin/python3
"""Installation of mcpwrap's files under DESTDIR: the one list of files and destinations.

Called by debian/rules; `packaging/stage.py DESTDIR SITE`, where SITE is a folder of unpacked
libraries for /usr/lib/mcpwrap/site. They may be another Python's: those with which this program
makes the schemas and the completions are on PYTHONPATH. `--python 3.13` is the Python that they are
for, else the one that runs this; `--interpreter` is the path of the Python that runs the programs;
`--zsh-folder` is the distribution's folder of zsh's functions.

MCPWRAP_COMMIT and MCPWRAP_PACKAGE, such as `deb 0.2.0+deb13`, are for `mcpwrap --version`.
"""

import argparse
import json
import os
import re
import shutil
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
LIB = "usr/lib/mcpwrap"
LIBEXEC = "usr/libexec/mcpwrap"
EXAMPLES = "usr/share/doc/mcpwrap/examples"
UNITS = "usr/lib/systemd/system"
USER_UNITS = "usr/lib/systemd/user"
SHARE = "usr/share"
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
# Python versions of the project: `requires-python` in pyproject.toml has the first.
SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))
# The libraries are compiled for one version; another one would end in their traceback. 78 is
# EX_CONFIG of sysexits.h(3head).
CHECK = """\
import sys

if sys.version_info[:2] != {version}:
    sys.stderr.write(
        "mcpwrap: this package is built for Python {python}, and {interpreter} is %d.%d: "
        "install the package of mcpwrap for this release of the distribution. "
        "Python {first} to {last} are supported.\\n" % sys.version_info[:2]
    )
    sys.exit(78)
"""
LAUNCHER = """\
#!{interpreter} -I
{check}
sys.path[:0] = ["/usr/lib/mcpwrap", "/usr/lib/mcpwrap/site"]
from {module} import main

sys.exit(main())
"""
QUICK_LAUNCHER = """\
#!{interpreter} -IS
{check}
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
    ("packaging/needrestart.conf", "etc/needrestart/conf.d/mcpwrap.conf", 0o644),
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


def version_of(text: str) -> tuple[int, int]:
    """Return a Python version such as `3.13`.

    Raises:
        ArgumentTypeError: it is none, or is not supported.
    """
    found = re.fullmatch(r"(\d+)\.(\d+)", text)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version not in SUPPORTED:
        supported = ", ".join(map(dotted, SUPPORTED))
        message = f"Python {text} is not supported: mcpwrap runs on {supported}"
        raise argparse.ArgumentTypeError(message)
    return version


def dotted(version: tuple[int, int]) -> str:
    """Return the text of a version."""
    return f"{version[0]}.{version[1]}"


def put_launchers(destdir: Path, version: tuple[int, int], interpreter: str) -> None:
    """Stage the programs, which run on this version of Python alone."""
    first, last = dotted(SUPPORTED[0]), dotted(SUPPORTED[-1])
    check = CHECK.format(
        version=version, python=dotted(version), interpreter=interpreter, first=first, last=last
    )
    for programs, launcher in ((PROGRAMS, LAUNCHER), (QUICK_PROGRAMS, QUICK_LAUNCHER)):
        for program, module in programs.items():
            text = launcher.format(interpreter=interpreter, check=check, module=module)
            put(text, destdir / program, 0o755)


def put_build(destdir: Path) -> None:
    """Stage the names of the package and of the commit, for `mcpwrap --version`."""
    given = os.environ  # noqa: TID251 - a program of its own
    build = {
        "package": given.get("MCPWRAP_PACKAGE", "unknown"),
        "commit": given.get("MCPWRAP_COMMIT", "unknown"),
    }
    put(f"{json.dumps(build)}\n", destdir / LIB / "mcpwrap/build.json", 0o644)


def put_completions(destdir: Path, zsh_folder: str) -> None:
    """Stage the completions for shells, which are made from the command line's own tree.

    `zsh_folder` is Debian's folder of zsh's functions, `vendor-completions`, or `site-functions`.
    """
    sys.path[:0] = [str(TOP), str(TOP / "packaging")]
    from completions import files  # noqa: PLC0415 - on that path

    for name, text in files(zsh_folder).items():
        put(text, destdir / SHARE / name, 0o644)


def main(
    destdir: Path, site: Path, version: tuple[int, int], interpreter: str, zsh_folder: str
) -> None:
    """Stage all files."""
    put_launchers(destdir, version, interpreter)
    put_build(destdir)
    for source, target, mode in FILES:
        put((TOP / source).read_text(), destdir / target, mode)
    put_units(destdir)
    put_schemas(destdir)
    put_completions(destdir, zsh_folder)
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("destdir", type=Path)
    parser.add_argument("site", type=Path)
    running = dotted(sys.version_info[:2])
    parser.add_argument("--python", type=version_of, default=running, metavar="X.Y")
    parser.add_argument("--interpreter", default="/usr/bin/python3", metavar="PATH")
    parser.add_argument("--zsh-folder", default="vendor-completions", metavar="NAME")
    given = parser.parse_args()
    main(given.destdir, given.site, given.python, given.interpreter, given.zsh_folder)
