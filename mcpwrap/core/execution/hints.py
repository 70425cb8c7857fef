"""Hint of a result: the next step for an agent whose code failed for a reason that runs have.

It is found in the last line of the traceback, which the code itself wrote: a hint is advice, and
nothing depends on it.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from posixpath import basename

from mcpwrap.core.wire.execution import job_frames

EMPTY = "no output; print() or end with an expression"
_MAX_STDERR_CHARS = 16_384  # of the end; a traceback ends with its reason
# Import names whose distribution has another name. Sources: the documentation of each.
_DISTRIBUTION_BY_MODULE: Mapping[str, str] = {
    "attr": "attrs", "bs4": "beautifulsoup4", "Crypto": "pycryptodome",
    "cv2": "opencv-python-headless", "dateutil": "python-dateutil", "distutils": "setuptools",
    "docx": "python-docx", "dotenv": "python-dotenv", "fitz": "PyMuPDF", "git": "GitPython",
    "google.protobuf": "protobuf", "igraph": "python-igraph", "jose": "python-jose", "jwt": "PyJWT",
    "Levenshtein": "python-Levenshtein", "magic": "python-magic", "markdown": "Markdown",
    "mpl_toolkits": "matplotlib", "MySQLdb": "mysqlclient", "nacl": "PyNaCl",
    "OpenSSL": "pyOpenSSL", "PIL": "pillow", "pkg_resources": "setuptools", "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary", "pylab": "matplotlib", "serial": "pyserial",
    "skimage": "scikit-image", "sklearn": "scikit-learn", "slugify": "python-slugify",
    "umap": "umap-learn", "usb": "pyusb", "yaml": "PyYAML", "zmq": "pyzmq",
}  # fmt: skip
# Modules of the standard library that a distribution leaves out, and that no package provides.
_NOT_PACKAGED = frozenset({"_tkinter", "tkinter", "turtle", "idlelib", "ensurepip"})
_SHOWN_PACKAGES = 30
_NAME = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_LAST_LINE = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?$")
_NO_MODULE = re.compile(r"No module named '(?P<name>[^']+)'")
_PATH = re.compile(r"No such file or directory: b?['\"](?P<path>[^'\"]+)['\"]")
_WRITABLE = ("/out/", "/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108 - paths in a run
_NETWORK_TEXT = re.compile(
    r"Address family not supported|Name or service not known|name resolution|Network is unreachable"
    r"|Max retries exceeded|Failed to establish a new connection|All connection attempts failed"
    r"|Cannot connect to host"
)
_NETWORK_KINDS = frozenset({"gaierror", "URLError", "ConnectError", "ClientConnectorError"})
_PIP = re.compile(
    r"No module named '?(?:pip|uv)'?|No such file or directory: b?'(?:pip3?|uv|conda)'"
)
_SHELL_ESCAPE = re.compile(r"^[ \t]*[!%][ \t]*(?:pip|uv|conda)[ \t]+install", re.MULTILINE)
_FAMILY_OF_POOLS = re.compile(r"multiprocessing/(?:managers|forkserver|connection)\.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """Properties of a run that a hint depends on."""

    code: str = ""
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    has_value: bool = False
    has_files: bool = False  # in /out
    is_later_call: bool = False  # not the first one of its session
    names_in: Collection[str] = ()  # the files in /in
    can_install: bool = False
    installed: Collection[str] | None = ()  # names of distributions; None: not known here


@dataclass(frozen=True, slots=True)
class _Failure:
    kind: str  # class of the exception, without its module
    text: str
    run: FinishedRun


def hint_of(run: FinishedRun) -> str:
    """Return one hint for a run that ended by itself; "" for none."""
    if run.exit_code == 0:
        return "" if run.stdout or run.stderr or run.has_value or run.has_files else EMPTY
    failure = _failure(run)
    return next((hint for rule in _RULES if (hint := rule(failure))), "")


def of_left_out(count: int) -> str:
    """Return the hint for entries of /out that do not come back."""
    return (
        f"left out of /out: {count}, as only {job_frames.MAX_FILES_OUT} regular files come back, "
        "and no folders, links or names with a leading dot: write one archive"
    )


def _failure(run: FinishedRun) -> _Failure:
    lines = run.stderr[-_MAX_STDERR_CHARS:].rstrip().splitlines()
    for line in reversed(lines):
        found = _LAST_LINE.match(line)
        # The text of an exception may have several lines; its class has a name in CamelCase.
        if found and not line.startswith((" ", "\t")) and _is_exception(found["kind"]):
            return _Failure(found["kind"].rpartition(".")[2], found["text"] or "", run)
    return _Failure("", lines[-1] if lines else "", run)


def _is_exception(kind: str) -> bool:
    name = kind.rpartition(".")[2]
    return name.endswith(("Error", "Exception", "Interrupt", "Exit")) or name == "gaierror"


def _installing(failure: _Failure) -> str:
    run = failure.run
    is_notebook = failure.kind == "SyntaxError" and _SHELL_ESCAPE.search(run.code)
    # A child process that did not find pip wrote so itself, above the traceback.
    if not is_notebook and not _PIP.search(run.stderr):
        return ""
    if run.can_install:
        return 'code cannot install packages: name them in the argument, `packages: ["NAME"]`'
    return f"code cannot install packages, and this server has no index; {_there(run)}"


def _missing_module(failure: _Failure) -> str:
    found = _NO_MODULE.search(failure.text) if failure.kind == "ModuleNotFoundError" else None
    if found is None or not _NAME.fullmatch(found["name"]):
        return ""
    module, run = found["name"], failure.run
    top = module.partition(".")[0]
    if f"{top}.py" in run.names_in:
        return "modules in /in are not on the path: add `import sys; sys.path.insert(0, '/in')`"
    if top in _NOT_PACKAGED:
        return f"{top} is not part of this Python, and no package provides it"
    known = _DISTRIBUTION_BY_MODULE.get(module) or _DISTRIBUTION_BY_MODULE.get(top)
    if not run.can_install:
        return f"{top} is not installed, and runs of this server cannot add packages; {_there(run)}"
    # A name that is not in the table may be invented, and a stranger may have registered it.
    condition = "" if known else f", if {top} is the name of the package that you mean"
    return f'call again with `packages: ["{known or top}"]`{condition}'


def _there(run: FinishedRun) -> str:
    if run.installed is None:
        return "importlib.metadata lists what is installed"
    names = sorted(run.installed, key=str.lower)
    if not names:
        return "there is the standard library alone"
    rest = len(names) - _SHOWN_PACKAGES
    more = f" and {rest} more" if rest > 0 else ""
    return f"there are {', '.join(names[:_SHOWN_PACKAGES])}{more}"


def _process_pools(failure: _Failure) -> str:
    # The process of a Manager writes the reason; what called it fails with an EOFError then.
    stderr = failure.run.stderr
    if "Address family not supported" in stderr and _FAMILY_OF_POOLS.search(stderr):
        return (
            "multiprocessing.Manager and the start method `forkserver` need sockets, which runs do "
            "not have: use `fork`, or a pool with arguments and return values"
        )
    return ""


def _no_network(failure: _Failure) -> str:
    if failure.kind not in _NETWORK_KINDS and not _NETWORK_TEXT.search(failure.text):
        return ""
    return "runs have no network: fetch with your other tools and pass the bytes by `files`"


def _no_display(failure: _Failure) -> str:
    if failure.kind != "TclError" or "display" not in failure.text:
        return ""
    return "runs have no display: draw with matplotlib, or write an image to /out"


def _no_input(failure: _Failure) -> str:
    if failure.kind != "EOFError" or "reading a line" not in failure.text:
        return ""
    return "standard input is empty, so input() fails: write the values into the code or `files`"


def _lost_name(failure: _Failure) -> str:
    if failure.kind != "NameError" or not failure.run.is_later_call:
        return ""
    return (
        "every call starts empty: variables and imports of earlier calls are gone; repeat them, "
        "and carry files by `files`"
    )


def _missing_file(failure: _Failure) -> str:
    found = _PATH.search(failure.text) if failure.kind == "FileNotFoundError" else None
    if found is None:
        return ""
    path = found["path"]
    name = basename(path)
    if name in failure.run.names_in and path != f"/in/{name}":
        return f"files of the argument `files` are in /in: open /in/{name}"
    if path.startswith(_WRITABLE):
        return "every call starts empty: /tmp and /out have no files of earlier calls; use `files`"
    return (
        "a run sees no files of the machine or of earlier calls: pass them by `files` (they are in "
        "/in), and write results to /out"
    )


def _refused_write(failure: _Failure) -> str:
    is_read_only = "Read-only file system" in failure.text
    is_refused = failure.kind == "PermissionError" and "[Errno 13]" in failure.text
    return "write to /tmp or /out: all else is read-only" if is_read_only or is_refused else ""


def _refused_call(failure: _Failure) -> str:
    if failure.kind != "PermissionError" or "[Errno 1]" not in failure.text:
        return ""
    return "this system call is not allowed in a run"


def _full_disk(failure: _Failure) -> str:
    if "No space left on device" not in failure.text:
        return ""
    return "the folders of a run are small and in memory: write less, or remove files meanwhile"


def _memory(failure: _Failure) -> str:
    is_known = failure.kind in ("MemoryError", "ArrayMemoryError", "_ArrayMemoryError")
    return "memory is limited (runs.memory): handle the data in chunks" if is_known else ""


def _tasks(failure: _Failure) -> str:
    text = failure.text
    if "can't start new thread" not in text and "Resource temporarily unavailable" not in text:
        return ""
    return "processes and threads are limited (runs.tasks): start fewer"


def _top_level_await(failure: _Failure) -> str:
    if failure.kind != "SyntaxError" or "'await' outside" not in failure.text:
        return ""
    return "code is a script, not a notebook: put `await` into a function and use asyncio.run()"


# In this order: the first that has a hint gives it.
_RULES: tuple[Callable[[_Failure], str], ...] = (
    _installing, _missing_module, _process_pools, _no_network, _no_display, _no_input, _lost_name,
    _missing_file, _refused_write, _refused_call, _full_disk, _memory, _tasks, _top_level_await,
)  # fmt: skip
