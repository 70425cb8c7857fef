"""Program in the interpreter of a run: as `python main.py`, with a value and figures."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcpwrap.as_job import run_process, runner
from mcpwrap.core.wire.execution import job_frames

PYPLOT = """
import warnings
class Axes:
    stale = False  # drawn since its last change
class Figure:
    dpi = 100
    def __init__(self, number):
        self.number = number
        self.axes = [Axes(), Axes()]
        self.axes[0].stale = number != 5
    def get_size_inches(self): return (self.number * 10, 5)
    def savefig(self, path, dpi):
        if self.number == 3: raise ValueError("no axes")
        if self.number == 4: warnings.warn("no glyph")
        with open(path, "w") as file: file.write(str(dpi))
def get_fignums(): return list(range(1, 12))
def figure(number): return Figure(number)
"""
SPAWNING = """
import multiprocessing, sys
def square(number): return number * number
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.map(square, [3]))
"""
AT_EXIT = """
import atexit, threading
atexit.register(print, 'exit')
threading.Thread(target=print, args=['thread']).start()
"""
HOOK = """
import sys
def hook(kind, error, trace): print(trace.tb_lineno, file=sys.stderr)
sys.excepthook = hook
1/0
"""


class Done:
    """A program that has ended."""

    def __init__(self, folder: Path, code: str) -> None:
        (folder / "main.py").write_text(code)
        done = subprocess.run(
            [sys.executable, run_process.RUNNER, folder / "main.py", folder / "value", folder],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=folder, timeout=60,
        )  # fmt: skip
        value = folder / "value"
        self.value = value.read_text() if value.exists() else None
        self.stdout, self.stderr, self.status = done.stdout, done.stderr, done.returncode


@pytest.mark.parametrize(
    ("code", "stdout", "value"),
    [
        ("print(1)", "1\n", None),  # print() has no value
        ("6 * 7", "", "42"),
        ("x = 6\nx * 7", "", "42"),
        ("x = 6 * 7", "", None),
        ("'a'\nx = 1", "", None),
        ("print(1); 'ü'", "1\n", "'ü'"),
        ("None", "", None),
        ("", "", None),
        ("# nothing", "", None),
        ("if True:\n    6 * 7", "", None),  # as in a notebook
        ("(y := 5)\n", "", "5"),
        ("class A:\n    def __repr__(self): 1/0\nA()", "",
         "<A: its repr failed with ZeroDivisionError>"),
        ("print(__name__, __file__.endswith('/main.py'), __builtins__.__name__)",
         "__main__ True builtins\n", None),
        ("import __main__; print(__main__.__dict__ is globals(), len(__import__('sys').argv))",
         "True 1\n", None),
        ("import os, sys; print(sys.path[0] == os.getcwd())", "True\n", None),
        ("from __future__ import annotations\ndef f(x: nothing): ...\nf.__annotations__",
         "", "{'x': 'nothing'}"),
        (AT_EXIT, "thread\nexit\n", None),
        (SPAWNING, "[9]\n[9]\n", None),
    ],
)  # fmt: skip
def test_code_runs_as_main(tmp_path: Path, code: str, stdout: str, value: str | None) -> None:
    done = Done(tmp_path, code)
    assert (done.stdout, done.stderr, done.value, done.status) == (stdout, "", value, 0)


@pytest.mark.parametrize(
    ("code", "status", "lines"),
    [
        ("def f():\n    1/0\n\nf()", 1,
         ["Traceback (most recent call last):", 'main.py", line 4, in <module>', "    f()",
          'main.py", line 2, in f', "ZeroDivisionError: division by zero"]),
        ("x = 1\n\n1/0", 1, ['main.py", line 3, in <module>', "ZeroDivisionError"]),
        ("if x\n  pass", 1, ['main.py", line 1', "    if x", "SyntaxError"]),
        ("print(1)\nreturn 5", 1, ['main.py", line 2', "    return 5", "SyntaxError"]),
        ("import asyncio\nawait asyncio.sleep(0)", 1, ['main.py", line 2', "SyntaxError"]),
        ("x = '\\0'\n\0", 1, ["null bytes"]),
        ("input()", 1, ["EOFError"]),
        ("raise SystemExit", 0, []),
        ("raise SystemExit(3)", 3, []),
        ("raise SystemExit('message')", 1, ["message"]),
        ("raise KeyboardInterrupt", -signal.SIGINT, ['main.py", line 1', "KeyboardInterrupt"]),
        (HOOK, 1, ["5"]),
        ("try:\n    1/0\nexcept ZeroDivisionError:\n    {}['key']", 1,
         ["ZeroDivisionError", "During handling", 'main.py", line 4', "KeyError: 'key'"]),
    ],
)  # fmt: skip
def test_an_exception_shows_the_code_alone(
    tmp_path: Path, code: str, status: int, lines: list[str]
) -> None:
    done = Done(tmp_path, code)
    assert (done.status, done.value) == (status, None)
    assert "runner.py" not in done.stderr
    at = 0
    for line in lines:
        at = done.stderr.index(line, at)
    assert bool(done.stderr) == bool(lines)


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    value = Done(tmp_path, "'ü' * 100_000").value
    assert value is not None
    assert value.endswith("ü…")
    assert job_frames.MAX_VALUE_BYTES - 3 < len(value.encode()) <= job_frames.MAX_VALUE_BYTES
    assert runner.MAX_VALUE_BYTES == job_frames.MAX_VALUE_BYTES


@pytest.fixture
def figures(tmp_path: Path) -> Path:
    """Put a stand-in for matplotlib beside the code: many figures are open, the fifth is drawn."""
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib/__init__.py").touch()
    (tmp_path / "matplotlib/pyplot.py").write_text(PYPLOT)
    return tmp_path


def test_open_figures_are_saved(figures: Path) -> None:
    done = Done(figures, "import matplotlib.pyplot\n1/0")
    text_by_name = {path.name: path.read_text() for path in figures.glob("figure-*")}
    assert text_by_name.keys() == {f"figure-{number}.png" for number in (1, 2, 4, 5, 6, 7, 8)}
    assert text_by_name["figure-1.png"] == "100"
    assert text_by_name["figure-4.png"] == "25.6"  # 40 inches in 1024 pixels
    assert done.stderr.startswith("figure 3 cannot be saved: no axes\nfigure 4: no glyph\nTrace")


def test_a_figure_that_the_code_has_saved_is_not_saved_again(figures: Path) -> None:
    (figures / "figure-2.png").write_text("saved by the code")
    Done(figures, "import matplotlib.pyplot")
    assert (figures / "figure-2.png").read_text() == "saved by the code"
    assert (figures / "figure-1.png").exists()
    assert not (figures / "figure-5.png").exists()  # drawn, and there is an image


def test_it_loads_two_modules_in_c_beside_those_of_the_interpreter(tmp_path: Path) -> None:
    code = "import sys; print(*sys.modules)"
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(Done(tmp_path, code).stdout.split()) - set(plain.stdout.split())
    assert loaded == {"_ast", "faulthandler"}


def test_fork_is_the_default_and_may_be_changed(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(Path(run_process.RUNNER).parent)!r})
import runner
sys.meta_path.insert(0, runner._ForkIsDefault())
import multiprocessing
print(type(multiprocessing.context.__loader__).__name__)
default = multiprocessing.get_start_method(allow_none=True)
multiprocessing.set_start_method("spawn")
print(default, multiprocessing.get_context("fork").get_start_method())
print(multiprocessing.context.__dict__["_default_context"]._default_context.get_start_method())
"""
    assert Done(tmp_path, code).stdout == "_ContextLoader\nNone fork\nfork\n"
