"""Program in the interpreter of a run: executes /tmp/main.py as `__main__`.

It differs from `python main.py` in three things: the value of a last expression is stored, open
figures of matplotlib are saved, and a signal writes the stacks of all threads. Only the standard
library of Python 3.11 to 3.14, and no module of it that is written in Python and not loaded at the
start of the interpreter: a fifth of the time of a short run was imports.
"""

import _ast
import builtins
import faulthandler
import os
import sys

# Both are in importlib.machinery, whose import takes 2 ms.
from _frozen_importlib_external import PathFinder, SourceFileLoader

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than all of these
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType, TracebackType

    _Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]

# Real-time signal that no program uses by chance, as a number: `signal` is slow to import.
STACKS_SIGNAL = 62
MAX_VALUE_BYTES = 16 * 1024  # as in `core/wire/execution/job_frames.py`
_MAX_FIGURES, _MAX_PIXELS = 8, 1024
_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".svg", ".pdf", ".webp")  # which matplotlib writes
_PARSE_ONLY = 0x400  # ast.PyCF_ONLY_AST
_THIS_FILE = __file__  # Python 3.14 has removed that name when it shows an exception


def main(main_file: str, value_file: str, out_folder: str) -> None:
    """Execute the code. Exceptions leave with a traceback that has its frames only."""
    if sys.version_info >= (3, 14):
        faulthandler.enable(c_stack=False)  # addresses in the interpreter tell an agent nothing
        sys.meta_path.insert(0, _ForkIsDefault())
    else:
        faulthandler.enable()
    faulthandler.register(STACKS_SIGNAL, all_threads=True, chain=False)
    sys.argv[:] = [main_file]
    sys.path[0] = os.path.dirname(main_file)
    namespace = _new_main(main_file)
    try:
        body, last = _compiled(main_file)
        exec(body, namespace)  # noqa: S102 - the purpose of a run
        if last is not None:
            _store(eval(last, namespace), value_file)  # noqa: S307
    except BaseException:
        sys.excepthook = _without_runner(sys.excepthook)
        raise
    finally:
        _save_figures(out_folder)


def _new_main(main_file: str) -> dict[str, object]:
    """Replace `__main__`, which is this module, by one for the code; return its namespace."""
    module = type(sys)("__main__")
    module.__file__ = main_file
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    return module.__dict__


def _compiled(main_file: str) -> "tuple[CodeType, CodeType | None]":
    """Return the code, and that of its last statement if this is an expression."""
    with open(main_file, "rb") as file:
        tree: _ast.Module = compile(file.read(), main_file, "exec", _PARSE_ONLY, dont_inherit=True)
    last = None
    statement = tree.body[-1] if tree.body else None
    if isinstance(statement, _ast.Expr):
        tree.body.pop()
        last = compile(_ast.Expression(statement.value), main_file, "eval", dont_inherit=True)
    return compile(tree, main_file, "exec", dont_inherit=True), last


def _store(value: object, value_file: str) -> None:
    """Store the repr of a value, as the interactive interpreter shows it: None has none."""
    if value is None:
        return
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - of any class: it is the run's
        text = f"<{type(value).__name__}: its repr failed with {type(error).__name__}>"
    encoded = text.encode("utf-8", "backslashreplace")
    if len(encoded) > MAX_VALUE_BYTES:
        cut = encoded[: MAX_VALUE_BYTES - 3].decode("utf-8", "ignore")
        encoded = f"{cut}…".encode()
    with open(value_file, "wb") as file:
        file.write(encoded)


def _save_figures(folder: str) -> None:
    """Save the figures that are open in matplotlib, each as figure-N.png."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    has_images = any(name.lower().endswith(_IMAGE_SUFFIXES) for name in os.listdir(folder))
    for number in pyplot.get_fignums()[:_MAX_FIGURES]:
        figure = pyplot.figure(number)
        path = f"{folder}/figure-{number}.png"
        # An artist is stale from its last change until it is drawn. The code has drawn this figure
        # to save it: a second image of it would cost the agent as much as the first.
        is_saved = has_images and figure.axes and not any(axes.stale for axes in figure.axes)
        if not is_saved and not os.path.exists(path):
            dpi = min(figure.dpi, _MAX_PIXELS / max(figure.get_size_inches()))
            _save_figure(number, figure.savefig, path, dpi)


def _save_figure(number: int, savefig: "Callable[..., object]", path: str, dpi: float) -> None:
    """Save one figure; write to standard error why it cannot be saved, and what is missing in it.

    By default a warning, such as of a glyph that the font lacks, names this file and its line.
    """
    import warnings  # noqa: PLC0415 - matplotlib has imported it; other runs do not need it

    try:
        with warnings.catch_warnings(record=True) as caught:
            savefig(path, dpi=dpi)
        notes = [f"figure {number}: {each.message}" for each in caught]
    except Exception as error:  # noqa: BLE001 - matplotlib and the run's own artists
        notes = [f"figure {number} cannot be saved: {error}"]
    for note in notes:
        # A stream of the run, which is no terminal or journal.
        sys.stderr.write(f"{note}\n")  # noqa: TID251


def _without_runner(hook: "_Hook") -> "_Hook":
    """Return an exception hook that passes the traceback to `hook` without this module's frames."""

    def show(
        kind: type[BaseException], error: BaseException, trace: "TracebackType | None"
    ) -> None:
        while trace is not None and trace.tb_frame.f_code.co_filename == _THIS_FILE:
            trace = trace.tb_next
        hook(kind, error.with_traceback(trace), trace)

    return show


class _ForkIsDefault:
    """Import hook that makes `fork` the default start method of multiprocessing.

    That of Python 3.14, `forkserver`, needs a socket. set_start_method() would import the package
    for each run, and prevent the code from choosing a method.
    """

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Find `multiprocessing.context` alone."""
        if name != "multiprocessing.context":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _ContextLoader(name, spec.origin)
        return spec


class _ContextLoader(SourceFileLoader):
    """Loader of `multiprocessing.context` that sets the default start method."""

    def exec_module(self, module: "ModuleType") -> None:
        """Execute the module, and replace the default that it has set."""
        super().exec_module(module)
        contexts = module.__dict__
        default: object = contexts["_default_context"]
        vars(default)["_default_context"] = contexts["_concrete_contexts"]["fork"]


if __name__ == "__main__":
    main(*sys.argv[1:])
