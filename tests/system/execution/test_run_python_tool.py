"""Tool `run_python`: files, images, progress, and results from which an agent learns what to do."""

import ast
import base64
import itertools
import re
from hashlib import sha256
from typing import Any

from tests.shared import pace
from tests.system.bed.machine import Machine
from tests.system.execution import calls
from tests.system.execution.calls import run
from tests.system.execution.submitted_code import HANGS_IN_TWO_THREADS, PNG
from tests.system.support import python_servers
from tests.system.support.python_servers import RunResult
from tests.system.support.tiers import only_in_test_all

STAGE = python_servers.with_python
ONE_SENTENCE = only_in_test_all("a sentence of the tool's: the fast tier has files, audit and runs")


def blocks(result: RunResult, kind: str) -> list[dict[str, Any]]:
    """Return the content blocks of one type."""
    return [block for block in result.content if block["type"] == kind]


# -------------------------------------------------------------------------------------------- files
def test_files_go_in_and_come_back(machine: Machine) -> None:
    """As text, as bytes, and as the URI of what an earlier run has left: nothing else is in /in."""
    bytes_in = bytes(range(256))
    files: dict[str, Any] = {
        "text.txt": "größer 世界\n",
        "data.bin": {"base64": base64.b64encode(bytes_in).decode()},
    }
    code = (
        "import hashlib, os\n"
        "print(sorted(os.listdir('/in')), open('/in/text.txt').read(), end='')\n"
        "hashed = hashlib.sha256(open('/in/data.bin', 'rb').read()).hexdigest()\n"
        "print(hashed, end='', file=open('/out/hash', 'w'))"
    )
    with calls.opened(machine) as session:
        first = run(session, code, files=files)
        assert first.stdout == "['data.bin', 'text.txt'] größer 世界\n"
        [link] = blocks(first, "resource_link")
        assert (link["name"], link["size"]) == ("hash", 64)
        uri = link["uri"]
        read = session.answer_to(session.request("resources/read", {"uri": uri}))["result"]
        hashed = sha256(bytes_in).hexdigest()
        assert base64.b64decode(read["contents"][0]["blob"]).decode() == hashed
        both = {"as-text": uri, "as-object": {"uri": uri}}
        reads = "[open(f'/in/{name}').read() for name in ('as-text', 'as-object')]"
        second = run(session, reads, files=both)
        assert second.value == str([hashed, hashed])
        refused = run(session, "open('/in/as-text', 'a')", files=both)
        assert refused.exit_code == 1
        assert refused.hint == "write to /tmp or /out: all else is read-only"
        empty = run(session, "import os; [os.listdir(each) for each in ('/in', '/out', '/tmp')]")
        assert empty.value == "[[], [], ['main.py']]"


@ONE_SENTENCE
def test_a_file_outlives_its_session_and_its_uri_is_the_key(machine: Machine) -> None:
    with calls.opened(machine) as session:
        first = run(session, "open('/out/notes.md', 'w').write('# kept')")
        [kept] = first.files
        listed = session.answer_to(session.request("resources/list"))["result"]["resources"]
        assert [each["uri"] for each in listed] == [kept["uri"]]
    with calls.opened(machine) as session:
        listed = session.answer_to(session.request("resources/list"))["result"]["resources"]
        assert listed == []
        assert run(session, "open('/in/n').read()", files={"n": kept["uri"]}).value == "'# kept'"
        read = session.answer_to(session.request("resources/read", {"uri": kept["uri"]}))["result"]
        assert read["contents"][0]["text"] == "# kept"
        unknown = f"run://{'0' * 32}/notes.md"
        refused = run(session, "1", files={"n": unknown})
        assert refused.is_error
        assert f"{unknown} in `files` names no file" in refused.text
        error = session.answer_to(session.request("resources/read", {"uri": unknown}))["error"]
        assert error["message"] == "Resource not found"


@ONE_SENTENCE
def test_images_are_shown_up_to_a_number_and_a_size(machine: Machine) -> None:
    """What is not shown is a link that says why; no image is in the text or structured content."""
    code = f"""{PNG}
for number in range(10):
    png(f"/out/small-{{number}}.png", 40, 30)
png("/out/a-wide.png", 4000, 10)
png("/out/b-long.png", 400, 400, noise=True)
"""
    with calls.opened(machine) as session:
        result = run(session, code)
    shown, links = blocks(result, "image"), blocks(result, "resource_link")
    assert [block["mimeType"] for block in shown] == ["image/png"] * 8
    described = {link["name"]: link.get("description", "") for link in links}
    assert list(described) == ["a-wide.png", "b-long.png", "small-8.png", "small-9.png"]
    assert re.fullmatch(r"image, not shown: 4000.10 px, [0-9]+ bytes", described["a-wide.png"])
    assert re.fullmatch(r"image, not shown: 400.400 px, 48[0-9]{4} bytes", described["b-long.png"])
    assert len(result.files) == 12
    assert shown[0]["data"] not in result.text


@ONE_SENTENCE
def test_a_file_that_is_too_large_is_listed(machine: Machine) -> None:
    with calls.opened(machine) as session:
        code = "for n, mib in enumerate((1, 9)): open(f'/out/{n}', 'wb').write(bytes(mib << 20))"
        result = run(session, code)
    small, large = result.files
    assert (small["size"], large["size"]) == (1 << 20, 9 << 20)
    assert large["uri"] is None
    assert [link["uri"] for link in blocks(result, "resource_link")] == [small["uri"]]


@ONE_SENTENCE
def test_links_and_fifos_in_out_are_not_files(machine: Machine) -> None:
    code = (
        "import os\n"
        "os.symlink('/etc/passwd', '/out/a'); os.mkfifo('/out/b'); os.mkdir('/out/c')\n"
        "open('/out/d', 'w').write('a file')"
    )
    with calls.opened(machine) as session:
        result = run(session, code)
        assert [file["name"] for file in result.files] == ["d"]
        assert result.structured["hint"].startswith("left out of /out: 3, as only 32 regular files")


# ------------------------------------------------------------------------------------------- limits
@ONE_SENTENCE
def test_a_timeout_leaves_the_output_and_the_stack_of_each_thread(machine: Machine) -> None:
    with calls.opened(machine) as session:
        result = run(session, HANGS_IN_TWO_THREADS, timeout=1)
    assert result.stdout == "begun\n"
    assert (result.ending, result.exit_code, result.killed) == ("timeout", 137, True)
    assert result.error == (
        "timeout: 1 s reached (the argument `timeout`, at most 10 by runs.seconds): raise it, or "
        "do less in one call"
    )
    stack = 'File "/tmp/main.py", line'
    assert f"{stack} 5 in wait_for_ever" in result.stderr
    assert re.search(rf"Current thread .*\n  {stack} (9|10) in <module>", result.stderr)
    assert "runner.py" not in result.stderr
    assert result.duration_ms >= 1000
    assert result.timeout == 1


@ONE_SENTENCE
def test_a_timeout_above_the_limit_is_lowered_and_said(machine: Machine) -> None:
    with calls.opened(machine) as session:
        lowered = run(session, "1", timeout=999)
        assert lowered.hint == "the timeout of 999 s was lowered to 10 s (runs.seconds)"
        assert lowered.timeout == 10
        own = run(session, "1", timeout=9)
        assert (own.timeout, "hint" in own.structured) == (9, False)


@ONE_SENTENCE
def test_a_run_without_memory_is_told_the_limit(machine: Machine) -> None:
    with calls.opened(machine) as session:
        result = run(session, "print('begun')\nkept = [bytearray(1 << 20) for _ in range(1000)]")
        assert (result.ending, result.exit_code, result.killed) == ("memory", 137, True)
        assert result.error.startswith("memory: 256 MiB reached (runs.memory): read the file in")
        assert result.stdout == "begun\n"
        assert run(session, "len(bytearray(100 << 20))").value == str(100 << 20)  # the twin


@ONE_SENTENCE
def test_each_result_has_the_memory_and_the_processor_time_of_its_run(machine: Machine) -> None:
    with calls.opened(machine) as session:
        idle = run(session, "import time; time.sleep(0.3)")
        large = run(session, "kept = bytearray(b'x') * (100 << 20)")
        # Of a child too.
        busy = run(
            session,
            "import subprocess, sys\n"
            "work = 'import time\\nwhile time.process_time() < 0.5: pass'\n"
            "subprocess.run([sys.executable, '-c', work])",
        )
    assert idle.peak_memory < 50 << 20
    assert 100 << 20 < large.peak_memory < 256 << 20
    assert idle.duration_ms >= 300
    assert idle.cpu_ms < 300
    assert busy.cpu_ms >= 500


@ONE_SENTENCE
def test_long_output_keeps_its_head_and_its_tail(machine: Machine) -> None:
    code = "for n in range(100_000): print(f'é line {n}')\nraise SystemExit('the end')"
    with calls.opened(machine) as session:
        result = run(session, code)
    assert result.truncated
    lines = result.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("é line 0", "é line 99999")
    assert re.search(r"\n\[[0-9]+ bytes left out\]\n", result.stdout)
    assert "\ufffd" not in result.stdout
    assert len(result.stdout.encode()) < 257 * 1024
    assert result.stderr == "the end\n"


# ------------------------------------------------------------------------------------------- advice
@ONE_SENTENCE
def test_the_description_says_what_models_get_wrong_and_what_is_there(machine: Machine) -> None:
    with calls.opened(machine) as session:
        [tool] = session.answer_to(session.request("tools/list"))["result"]["tools"]
        version = run(session, "import platform; print(platform.python_version())").stdout.strip()
        there = run(
            session,
            "from importlib.metadata import distributions\n"
            "sorted({each.name for each in distributions()}, key=str.lower)",
        ).value
    text = tool["description"]
    assert text.startswith("Every call starts empty; carry files by `files`")
    assert f"Runs Python {version} code" in text
    installed = re.search(r"Installed: the standard library(.*)\. No other packages", text)
    assert installed, text
    names = [each.rpartition(" ")[0] for each in installed[1].split(", ")[1:]]
    assert names == ast.literal_eval(there)[: len(names)]
    assert "Limits: 10 s, 256 MiB of memory, 100 % of one processor, 64 processes" in text
    assert set(tool["inputSchema"]["properties"]) == {"code", "timeout", "files"}
    assert {"stdout", "stderr", "exit_code", "error", "truncated", "duration_ms", "killed"} < set(
        tool["outputSchema"]["required"]
    )


ADVICE = {  # code: fragments of standard error or the error, and the start of the hint
    "x = 1": ("", "no output; print() or end with an expression"),
    "x": ("NameError", "every call starts empty: variables and imports of earlier calls"),
    "input('? ')": ("EOFError", "standard input is empty, so input() fails"),
    "import nosuch": ("ModuleNotFoundError", "nosuch is not installed, and runs of this server"),
    "import urllib.request as r; r.urlopen('http://a.test')": ("URLError", "runs have no network"),
    "open('/in/a')": ("FileNotFoundError", "a run sees no files of the machine or of earlier"),
    "open('/usr/a', 'w')": ("Error: [Errno", "write to /tmp or /out: all else is read-only"),
    "bytearray(1 << 50)": ("MemoryError", "memory is limited (runs.memory)"),
    "import multiprocessing as m; m.Manager()": ("Errno 97", "multiprocessing.Manager and the"),
    "open('/tmp/big', 'wb').write(bytes(200 << 20))": ("Errno 28", "the folders of a run are"),
    "import threading as t\nfor _ in range(99): t.Thread(None, t.Event().wait, daemon=1).start()": (
        "can't start new thread",
        "processes and threads are limited (runs.tasks)",
    ),
    "import os; os.abort()": ("SIGABRT", ""),
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)": ("SIGTERM", ""),
}


@ONE_SENTENCE
def test_a_failure_says_what_to_do_instead(machine: Machine) -> None:
    with calls.opened(machine) as session:
        assert "hint" not in run(session, "x").structured  # the first call has lost nothing
        for code, (fragment, hint) in ADVICE.items():
            result = run(session, code)
            assert not result.is_error, code
            assert fragment in f"{result.stderr} {result.error}", (code, result)
            assert result.structured.get("hint", "").startswith(hint), (code, result)
            assert bool(hint) == ("hint" in result.structured), (code, result)


REFUSED: dict[str, dict[str, Any]] = {  # the error, and the arguments
    "`code` must be a string with Python code": {"code": " \n"},
    "`code` has 65537 bytes, and 65536 is the limit (runs.code)": {"code": "#" * 65_537},
    "'language' is not an argument; they are code, timeout": {"code": "1", "language": "python"},
    "`timeout` must be a whole number of seconds": {"code": "1", "timeout": "soon"},
    "'../a' in `files` cannot be a name in /in": {"code": "1", "files": {"../a": ""}},
    "a `base64` in `files` is not valid base64": {"code": "1", "files": {"a": {"base64": "?"}}},
    "nosuch is not installed, and runs of this server cannot": {
        "code": "1",
        "packages": ["nosuch"],
    },
}


@ONE_SENTENCE
def test_a_call_with_wrong_arguments_executes_nothing(machine: Machine) -> None:
    before = len(calls.worker_lines(machine))
    with calls.opened(machine) as session:
        for error, arguments in REFUSED.items():
            result = run(session, **arguments)
            assert result.is_error, error
            assert error in result.text
            assert "the code was not executed" in result.text
        assert run(session, "#" * 65_536).exit_code == 0  # the twin
    assert len(calls.worker_lines(machine)) == before + 1


# ----------------------------------------------------------------------------------------- progress
SILENT_S = 5.0  # promised: a notification at least this often


@ONE_SENTENCE
def test_progress_has_the_output_so_far(machine: Machine) -> None:
    """Two runs are in progress, one of them silent; the third waits for a slot meanwhile."""
    speaks = "import time\nfor n in range(7):\n    print('step', n)\n    time.sleep(1)"
    silent = "import time; time.sleep(7)"
    with calls.opened(machine) as session:
        run(session, "1")
        results, notifications = calls.run_at_once(session, speaks, silent, then="'served'")
    assert [each.value for each in results] == [None, None, "'served'"]
    texts: list[list[str]] = [[], [], []]
    for number in range(3):
        of_one = [each for each in notifications if each.call == number]
        times = [0.0, *(each.at_s for each in of_one)]
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert max(gaps) < pace.promised(SILENT_S + 1), gaps
        assert [each.progress for each in of_one] == sorted({each.progress for each in of_one})
        texts[number] = [each.message for each in of_one]
    assert any("running; output ends with: step 0\nstep 1" in text for text in texts[0]), texts
    assert any("running, no output so far" in text for text in texts[1]), texts
    assert any("queued, 0 runs before this one" in text for text in texts[2]), texts


# -------------------------------------------------------------------------------------------- audit
def test_audit_and_worker_record_the_run_and_not_its_code(machine: Machine) -> None:
    """Hash, length, limits and ending; both name the run alike, and so does the result."""
    canary = "Xq7canary"
    code = f"secret = {canary!r}\nprint(len(secret))"
    with calls.opened(machine) as session:
        ran = run(session, code, timeout=9)
        killed = run(session, f"while 1: pass  # {canary}", timeout=1)
        session.close()
    machine.await_idle_gate()
    digest = sha256(code.encode()).hexdigest()
    submitted, report, _, end = calls.audited(machine)[-4:]
    assert submitted["code"] == {"sha256": digest, "size_bytes": len(code), "timeout_s": 9}
    assert report["run"] == {
        "id": ran.run,
        "ending": "exit",
        "exit_code": 0,
        "duration_ms": ran.duration_ms,
        "timeout_s": 9,
    }
    assert (end["run"]["ending"], end["run"]["killed"]) == ("timeout", True)
    first, second = calls.worker_lines(machine)[-2:]
    assert first == (
        f"run {ran.run} of pool python: code sha256:{digest} {len(code)} bytes, timeout 9 s, "
        f"ending exit, exit code 0, {ran.duration_ms} ms, truncated no, killed no"
    )
    assert second.startswith(f"run {killed.run} of pool python: ")
    assert "timeout 1 s, ending timeout, exit code 137, " in second
    assert second.endswith("truncated no, killed yes")
    machine.look("journalctl --sync")
    assert canary not in machine.look("journalctl -b -o cat --no-pager")
    machine.look(f"! grep -rq {canary} /var/log/mcpwrap /var/lib/mcpwrap /var/cache/mcpwrap")


@ONE_SENTENCE
def test_calls_side_by_side_do_not_mix(machine: Machine) -> None:
    codes = [f"print('ö' * 3); {number}" for number in range(8)]
    with calls.opened(machine) as session:
        results, _ = calls.run_at_once(session, *codes)
    assert [(each.value, each.stdout) for each in results] == [
        (str(number), "ööö\n") for number in range(8)
    ]
    assert len({each.run for each in results}) == 8
