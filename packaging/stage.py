#!/usr/bin/python3
"""Put the files of an installed mcpwrap under DESTDIR: the one list of what goes where.

Called by debian/rules; `packaging/stage.py DESTDIR WHEELS`, where WHEELS is a folder of unpacked
libraries for /usr/lib/mcpwrap/site.
"""

import shutil
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
LIB = "usr/lib/mcpwrap"
# Program, and the module whose main() it runs.
PROGRAMS = {
    "usr/bin/mcpwrap": "mcpwrap.cli.main",
    f"{LIB}/mcpwrap-root": "mcpwrap.as_root.main",
    f"{LIB}/mcpwrap-gate": "mcpwrap.as_gate.main",
    f"{LIB}/mcpwrap-wrapper": "mcpwrap.as_wrapper.main",
}
LAUNCHER = """\
#!/usr/bin/python3 -I
import sys

sys.path[:0] = ["/usr/lib/mcpwrap", "/usr/lib/mcpwrap/site"]
from {module} import main

sys.exit(main())
"""
FILES = [
    ("mcpwrap/as_agent/connect.py", "usr/bin/mcpwrap-connect", 0o755),
    ("nftables/mcpwrap.nft", f"{LIB}/nftables/mcpwrap.nft", 0o644),
    ("packaging/sysusers.d/mcpwrap.conf", "usr/lib/sysusers.d/mcpwrap.conf", 0o644),
    ("packaging/tmpfiles.d/mcpwrap.conf", "usr/lib/tmpfiles.d/mcpwrap.conf", 0o644),
    ("examples/config.toml", "usr/share/doc/mcpwrap/examples/config.toml", 0o644),
]
UNITS = "usr/lib/systemd/system"


def put(text: str, target: Path, mode: int) -> None:
    """Write one file with its folders."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    target.chmod(mode)


def main(destdir: Path, site: Path) -> None:
    """Stage everything."""
    for program, module in PROGRAMS.items():
        put(LAUNCHER.format(module=module), destdir / program, 0o755)
    for source, target, mode in FILES:
        put((TOP / source).read_text(), destdir / target, mode)
    for unit in sorted((TOP / "units").iterdir()):
        put(unit.read_text(), destdir / UNITS / unit.name, 0o644)
    for source in sorted((TOP / "mcpwrap").rglob("*.py")):
        put(source.read_text(), destdir / LIB / source.relative_to(TOP), 0o644)
    # Tools that the libraries bring for a command line of their own stay out.
    drop = shutil.ignore_patterns("bin", "__pycache__", "*.pyi", "py.typed", "tests")
    shutil.copytree(site, destdir / LIB / "site", ignore=drop)
    (destdir / "etc/mcpwrap/conf.d").mkdir(parents=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
