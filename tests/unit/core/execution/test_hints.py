"""Hints: from what a run wrote to the next step."""

from typing import Any

import pytest

from mcpwrap.core.execution import hints
from mcpwrap.core.execution.hints import FinishedRun

TRACE = 'Traceback (most recent call last):\n  File "/tmp/main.py", line 1, in <module>\n    x\n'
MANAGER = '  File "/usr/lib/python3.14/multiprocessing/managers.py", line 5, in start'
MANY = tuple(f"p{n:02}" for n in range(32))


def hint(last_line: str, **run: Any) -> str:
    return hints.hint_of(FinishedRun(stderr=TRACE + last_line + "\n", exit_code=1, **run))


@pytest.mark.parametrize(
    ("last_line", "run", "expected"),
    [
        # Modules.
        ("ModuleNotFoundError: No module named 'cv2'", {"can_install": True},
         'call again with `packages: ["opencv-python-headless"]`'),
        ("ModuleNotFoundError: No module named 'PIL'", {"can_install": True},
         'call again with `packages: ["pillow"]`'),
        ("ModuleNotFoundError: No module named 'sklearn.svm'", {"can_install": True},
         'call again with `packages: ["scikit-learn"]`'),
        ("ModuleNotFoundError: No module named 'google.protobuf'", {"can_install": True},
         'call again with `packages: ["protobuf"]`'),
        ("ModuleNotFoundError: No module named 'distutils'", {"can_install": True},
         'call again with `packages: ["setuptools"]`'),
        # A module that is not in the table may be an invention of the model.
        ("ModuleNotFoundError: No module named 'polars.io'", {"can_install": True},
         'call again with `packages: ["polars"]`, if polars is the name of the package'),
        ("ModuleNotFoundError: No module named 'cv2'", {},
         "runs of this server cannot add packages; there is the standard library alone"),
        ("ModuleNotFoundError: No module named 'cv2'", {"installed": ("six", "Attrs")},
         "there are Attrs, six"),
        ("ModuleNotFoundError: No module named 'cv2'", {"installed": None},
         "cannot add packages; importlib.metadata lists what is installed"),
        ("ModuleNotFoundError: No module named 'cv2'", {"installed": MANY}, "p29 and 2 more"),
        ("ModuleNotFoundError: No module named 'tkinter'", {"can_install": True},
         "tkinter is not part of this Python, and no package provides it"),
        ("ModuleNotFoundError: No module named 'helper'", {"names_in": {"helper.py"}},
         "sys.path.insert(0, '/in')"),
        ("ModuleNotFoundError: No module named 'x y'", {}, ""),
        ("ModuleNotFoundError: No module named 'a`b'", {}, ""),
        ("ModuleNotFoundError: odd", {}, ""),
        # Installing.
        ("FileNotFoundError: [Errno 2] No such file or directory: 'pip'", {"can_install": True},
         "name them in the argument, `packages:"),
        ("/usr/bin/python3: No module named pip\nsubprocess.CalledProcessError: Command failed", {},
         "code cannot install packages, and this server has no index"),
        ("SyntaxError: invalid syntax", {"code": "!pip install x", "can_install": True},
         "code cannot install packages"),
        ("SyntaxError: invalid syntax", {"code": "%pip install x"}, "has no index"),
        ("SyntaxError: invalid syntax", {"code": "x = = 1"}, ""),
        # Network.
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", {}, "no network"),
        ("OSError: [Errno 97] Address family not supported by protocol", {}, "no network"),
        ("urllib.error.URLError: <urlopen error [Errno 97]>", {}, "pass the bytes by `files`"),
        ("requests.exceptions.ConnectionError: HTTPSConnectionPool: Max retries exceeded", {},
         "no network"),
        ("httpx.ConnectError: x", {}, "no network"),
        (f"{MANAGER}\nOSError: [Errno 97] Address family not supported by protocol", {},
         "start method `forkserver`"),
        (f"{MANAGER}\nOSError: [Errno 97] Address family not supported by protocol\nEOFError", {},
         "multiprocessing.Manager and the start method"),  # in its own process, and its caller
        ("_tkinter.TclError: no display name and no $DISPLAY environment variable", {},
         "runs have no display"),
        ("_tkinter.TclError: bad option", {}, ""),
        # Input, names and files.
        ("EOFError: EOF when reading a line", {}, "standard input is empty"),
        ("EOFError: Ran out of input", {}, ""),  # of pickle
        ("NameError: name 'df' is not defined", {"is_later_call": True}, "every call starts empty"),
        ("NameError: name 'df' is not defined", {}, ""),  # in the first call it is a mistake
        ("FileNotFoundError: [Errno 2] No such file or directory: '/mnt/data/a.csv'", {},
         "a run sees no files of the machine"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/mnt/data/a.csv'",
         {"names_in": {"a.csv"}}, "open /in/a.csv"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'",
         {"names_in": {"a.csv"}}, "open /in/a.csv"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/in/b.csv'",
         {"names_in": {"a.csv"}}, "pass them by `files`"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/tmp/a'", {},
         "/tmp and /out have no files of earlier calls"),
        ("FileNotFoundError: of another form", {}, ""),
        ("PermissionError: [Errno 13] Permission denied: '/etc/x'", {}, "write to /tmp or /out"),
        ("OSError: [Errno 30] Read-only file system: '/x'", {}, "write to /tmp or /out"),
        ("PermissionError: [Errno 1] Operation not permitted", {}, "not allowed in a run"),
        ("OSError: [Errno 28] No space left on device", {}, "small and in memory"),
        # Limits.
        ("MemoryError", {}, "runs.memory"),
        ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 1 TiB", {}, "runs.memory"),
        ("RuntimeError: can't start new thread", {}, "runs.tasks"),
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", {}, "runs.tasks"),
        ("SyntaxError: 'await' outside function", {}, "asyncio.run()"),
        # Without a hint.
        ("ValueError: x", {}, ""),
        ("ZeroDivisionError: division by zero", {}, ""),
        ("", {}, ""),
        # The text of an exception can have several lines, and name others.
        ("EOFError: EOF when reading a line\n  and more: NameError", {"is_later_call": True},
         "input() fails"),
    ],
)  # fmt: skip
def test_a_failure_has_a_hint(last_line: str, run: dict[str, Any], expected: str) -> None:
    found = hint(last_line, **run)
    assert expected in found if expected else found == ""


def test_without_a_traceback_there_is_no_hint() -> None:
    assert hints.hint_of(FinishedRun(exit_code=3)) == ""
    assert hints.hint_of(FinishedRun(exit_code=3, stderr="usage: x\n")) == ""


def test_the_last_exception_counts() -> None:
    stderr = (
        f"{TRACE}KeyError: 'a'\n\nDuring handling of the above exception, another exception "
        f"occurred:\n\n{TRACE}EOFError: EOF when reading a line\n"
    )
    assert "standard input" in hints.hint_of(FinishedRun(stderr=stderr, exit_code=1))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({}, hints.EMPTY),
        ({"stdout": "1\n"}, ""),
        ({"stderr": "warning\n"}, ""),
        ({"has_value": True}, ""),
        ({"has_files": True}, ""),
    ],
)
def test_an_empty_result_says_so(run: dict[str, Any], expected: str) -> None:
    assert hints.hint_of(FinishedRun(**run)) == expected
