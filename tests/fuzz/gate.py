"""Fuzzer for lines that the gate and the server would parse differently, or that raise.

Not run in CI: it ends when it is stopped, or has found one. In a virtual environment of its own:

    pip install atheris msgspec
    python -m tests.fuzz.gate CORPUS -max_len=600 -max_total_time=600

CORPUS is a folder; an empty one is filled with the lines of the dialogues. What libFuzzer knows as
options it takes here too. With `node` in PATH, each call is read by JavaScript as well.
"""

import shutil
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["mcpwrap"]):
    from mcpwrap.core.gate.gate import Gate
    from tests.unit.core.agreement import (
        Node,
        as_doubles,
        calls_as_python_reads,
        forwarded_and_judged,
        gate_in_session,
    )
    from tests.unit.core.scripted import MODERN

DIALOGUES = Path(__file__).parent.parent / "unit" / "core" / "dialogues"


def fill(corpus: Path) -> None:
    """Begin with messages as people write them, because chance does not find a valid message."""
    corpus.mkdir(exist_ok=True)
    if any(corpus.iterdir()):
        return
    for file in DIALOGUES.glob("*.txt"):
        for number, line in enumerate(file.read_text().splitlines()):
            who, _, what = line.partition("> ")
            if who in {"agent", "server"}:
                (corpus / f"{file.stem}-{number}").write_text(what.replace("MODERN", MODERN))


def main() -> None:
    """Fuzz until stopped."""
    program = shutil.which("node")
    node = Node(program) if program else None

    def look(line: bytes) -> None:
        line = line.replace(b"\n", b" ")  # a line is cut at each of them
        gate: Gate = gate_in_session()[0]
        gate.from_server(line)
        forwarded, judged = forwarded_and_judged(line)
        assert repr(calls_as_python_reads(forwarded)) == repr(judged)
        if node and forwarded:
            read = [call for one in forwarded for call in node.calls(one)]
            assert read == [as_doubles(call) for call in judged]

    fill(Path(sys.argv[1]))
    atheris.Setup(sys.argv, look)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
