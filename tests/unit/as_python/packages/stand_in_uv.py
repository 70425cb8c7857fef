"""Stand-in for uv: an executable that plays the outcomes that a test writes into its folder.

index/NAME      text of the lock line of NAME; a package without a file is unknown
says            text for standard error, with exit status 2, while the file exists
dies            while it exists, the program is killed
stays           while it exists, the program does not end, nor does its child
calls           arguments and environment of each call, one JSON object a line
"""

import sys
from pathlib import Path

_PROGRAM = r"""
import json, os, pathlib, signal, subprocess, sys
here = pathlib.Path(__file__).parent
with (here / "calls").open("a") as calls:
    calls.write(json.dumps({"argv": sys.argv[1:], "environ": dict(os.environ)}) + "\n")
value = dict(each.split("=", 1) for each in sys.argv if each.startswith("--") and "=" in each)
if (here / "stays").exists():
    child = subprocess.Popen(["/bin/sleep", "1000"])
    (here / "child").write_text(str(child.pid))
    signal.pause()
if (here / "dies").exists():
    os.kill(os.getpid(), signal.SIGKILL)
if (here / "says").exists():
    sys.stderr.write((here / "says").read_text())
    sys.exit(2)
if "compile" in sys.argv:
    lock = ""
    for name in pathlib.Path(sys.argv[-1]).read_text().split():
        lines = here / "index" / name
        if not lines.exists():
            sys.exit(f"error: No solution found: Because {name} was not found in the registry")
        lock += lines.read_text()
    pathlib.Path(value["--output-file"]).write_text(lock)
else:
    target = pathlib.Path(value["--target"])
    cache = pathlib.Path(os.environ["UV_CACHE_DIR"])
    cache.mkdir(exist_ok=True)
    (cache / "wheel").write_bytes(b"w" * 20000)
    (target / ".lock").touch()
    for line in pathlib.Path(value["--requirements"]).read_text().splitlines():
        if "==" in line:
            name = line.split("==")[0]
            (target / name).mkdir(mode=0o700)
            (target / name / "__init__.py").write_text("x = 1\n" + "#" * 40000)
            (target / name / "__init__.py").chmod(0o4600)
            (target / name / "tool").write_text("")
            (target / name / "tool").chmod(0o700)
            (target / name / "link").symlink_to("/etc/passwd")
            (target / f"{name}.pth").write_text(f"import os; os.mkdir('{here}/ran')")
"""


class StandInUv:
    """The program and the folder of its outcomes."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        (folder / "index").mkdir(parents=True)
        for name in names:
            self.publish(name, "1.0")
        self.path = folder / "uv"
        self.path.write_text(f"#!{sys.executable} -IS\n{_PROGRAM}")
        self.path.chmod(0o755)

    def publish(self, name: str, version: str) -> None:
        """Put a version into the index in place of another one."""
        text = f"{name}=={version} \\\n    --hash=sha256:{'a' * 64}\n"
        (self.folder / "index" / name).write_text(text)

    def calls(self) -> list[str]:
        """Return the calls so far: JSON, one each."""
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []
