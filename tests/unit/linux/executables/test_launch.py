"""Code paths of a server's definition: common command lines, and misleading ones."""

from pathlib import Path

import pytest

from mcpwrap.linux.executables.launch import launch_of, loaded

# Below TOP: `main.py`, `hook.js`, `tool` (mode 0755), `plain`, `data.db`; and the folders `dir`,
# `go` and `python`.
COMMANDS = [
    ("/bin/tool", [], []),
    ("/bin/tool", ["TOP/data.db", "TOP/dir"], []),  # data
    ("/bin/tool", ["TOP/main.py"], ["TOP/main.py"]),  # code at any position
    ("/bin/tool", ["--plugin=TOP/hook.js"], ["TOP/hook.js"]),
    ("/bin/tool", ["TOP/tool"], ["TOP/tool"]),  # by its mode
    ("/usr/bin/node", ["TOP/plain", "TOP/data.db"], ["TOP/plain"]),
    ("/usr/bin/node", ["TOP/main.py", "TOP/dir"], ["TOP/main.py"]),
    ("/usr/bin/node", ["-r", "TOP/plain", "TOP/data.db"], ["TOP/plain", "TOP/data.db"]),
    ("/usr/bin/node", ["--require=TOP/plain", "-e", "1", "TOP/data.db"], ["TOP/plain"]),
    ("/usr/bin/node", ["--unknown", "TOP/plain", "TOP/data.db"], ["TOP/plain", "TOP/data.db"]),
    ("/usr/bin/python3.11", ["TOP/dir", "TOP/data.db"], ["TOP/dir"]),  # its `__main__.py`
    ("/usr/bin/python3", ["-u", "TOP/main.py", "TOP/plain"], ["TOP/main.py"]),
    ("/usr/bin/python3", ["-m", "server", "TOP/dir"], []),
    ("/bin/sh", ["-c", "exec TOP/plain 'TOP/dir'"], ["TOP/plain"]),
    ("/usr/bin/java", ["-cp", "TOP/dir:TOP/plain", "Main"], ["TOP/dir", "TOP/plain"]),
    ("/usr/bin/npx", ["-y", "package", "TOP/dir"], []),
    ("/usr/bin/npx", ["-y", "TOP/dir", "TOP/data.db"], ["TOP/dir", "TOP/data.db"]),
    ("/usr/bin/npx", ["--package", "TOP/dir", "command"], ["TOP/dir"]),
    ("/usr/bin/uvx", ["--from", "git+https://x.example/TOP/dir", "server", "--at", "TOP/dir"], []),
    ("/usr/bin/uv", ["--directory", "TOP/dir", "run", "plain"], ["TOP/dir"]),
    ("/usr/bin/uv", ["run", "TOP/plain"], ["TOP/plain"]),
    ("/usr/bin/env", ["A=1", "node", "TOP/plain"], ["/s", "TOP/plain"]),
    ("/usr/bin/timeout", ["5", "TOP/tool", "TOP/plain"], ["TOP/tool"]),
    ("/usr/bin/env", ["-i"], []),
    # Missing files: their owner can create them after the check.
    ("/usr/bin/node", ["TOP/gone", "TOP/dir"], ["TOP/gone"]),
    ("/bin/tool", ["TOP/gone.py"], ["TOP/gone.py"]),
    ("/bin/sh", ["-c", "exec TOP/gone"], ["TOP/gone"]),
    # Commands in a shell text.
    ("/bin/bash", ["-lc", "TOP/plain --x"], ["TOP/plain"]),
    ("/bin/bash", ["-euo", "pipefail", "-c", "TOP/plain"], ["TOP/plain"]),
    ("/bin/sh", ["-e", "-u", "TOP/plain"], ["TOP/plain"]),
    ("/bin/sh", ["-c", "cd TOP/dir && npm start"], ["TOP/dir", "/s"]),
    ("/bin/sh", ["-c", "cd 'TOP' && exec node dir"], ["TOP/dir", "/s"]),
    ("/bin/sh", ["-c", "A=1 PYTHONPATH=TOP/dir python3 -m x"], ["TOP/dir", "/s"]),
    ("/bin/sh", ["-c", ". TOP/plain; tool TOP/dir"], ["TOP/plain", "/s"]),
    ("/bin/sh", ["-c", "/bin/tool TOP/dir 2>/dev/null >TOP/log"], ["/bin/tool"]),
    # Commands that another command starts.
    ("/usr/bin/env", ["-u", "A", "node", "TOP/plain"], ["/s", "TOP/plain"]),
    ("/usr/bin/env", ["-S", "node TOP/plain"], ["/s", "TOP/plain"]),
    ("/usr/bin/env", ["PYTHONPATH=TOP/dir", "python3", "-m", "x"], ["/s", "TOP/dir"]),
    ("/usr/bin/env", ["-C", "TOP/dir", "npx", "x"], ["/s", "TOP/dir"]),
    ("/usr/bin/stdbuf", ["-o", "L", "node", "TOP/plain"], ["/s", "TOP/plain"]),
    ("/opt/mcp-proxy", ["--port", "1", "--", "node", "TOP/plain"], ["/s", "TOP/plain"]),
    ("/usr/bin/npx", ["-y", "supergateway", "--stdio", "node TOP/plain"], ["/s", "TOP/plain"]),
    ("/usr/bin/uv", ["run", "--with", "x", "python", "TOP/plain"], ["/s", "TOP/plain"]),
    # Other forms of options and operands.
    ("/usr/bin/npx", ["-y", "file:TOP/dir"], ["TOP/dir"]),
    ("/usr/bin/uvx", ["git+file://TOP/dir"], ["TOP/dir"]),
    ("/usr/bin/uvx", ["--index-url", "file://TOP/dir", "x"], ["TOP/dir"]),
    ("/usr/bin/php", ["-d", "auto_prepend_file=TOP/plain", "-r", "1"], ["TOP/plain"]),
    ("/usr/bin/python3", ["-X", "dev", "TOP/plain"], ["TOP/plain"]),
    ("/usr/bin/python3", ["-Ic", "sys.path.append('TOP/dir')"], ["TOP/dir"]),
    ("/usr/bin/node", ["-e", "require('TOP/dir')"], ["TOP/dir"]),
    ("/usr/bin/java", ["@TOP/plain"], ["TOP/plain"]),
    # Data.
    ("/usr/bin/deno", ["run", "--allow-read=TOP/dir", "TOP/main.py"], ["TOP/main.py"]),
    ("/usr/bin/java", ["-Djava.io.tmpdir=TOP/dir", "-jar", "TOP/plain"], ["TOP/plain"]),
    ("/usr/bin/npx", ["-y", "--registry", "https://x.example/TOP/dir", "x", "TOP/dir"], []),
    ("/usr/bin/uvx", ["--python", "3.12", "server", "--repository", "TOP/dir"], []),
    ("/opt/server", ["--language", "python", "TOP/dir"], []),
    ("/usr/bin/npx", ["-y", "server", "TOP/go", "TOP/python"], []),  # folders with such names
    ("/usr/bin/docker", ["run", "-v", "TOP/go:/go", "image"], []),
    ("/opt/server", ["--root", "TOP/python"], []),
    ("/opt/server", ["TOP/gone/python"], ["TOP/gone/python", "/s"]),
    ("/bin/sh", ["-c", "exec /bin/tool --db TOP/data.db 2>>TOP/plain"], ["/bin/tool"]),
    ("/bin/sh", ["-c", "/bin/tool TOP/plain | tee TOP/data.db"], ["/bin/tool", "/s"]),
    ("/bin/sh", ["-c", "/bin/tool TOP/tool"], ["/bin/tool", "TOP/tool"]),
    ("/bin/sh", ["-c", "/bin/cat TOP/plain | sh"], ["/bin/cat", "TOP/plain", "/s"]),
    ("/bin/sh", ["-c", "/bin/sh <TOP/plain"], ["/bin/sh", "TOP/plain"]),
    ("/bin/sh", ["-c", "eval '. TOP/plain'"], ["TOP/plain"]),
    ("/bin/sh", ["-c", "e'v'al '. TOP/plain'"], ["TOP/plain"]),
    ("/bin/bash", ["-c", "enable -f TOP/plain x"], ["TOP/plain"]),
    ("/bin/sh", ["-c", "/bin/tool > >(sh TOP/plain)"], ["/bin/tool", "TOP/plain"]),
    ("/bin/sh", ["-c", "/bin/tool \"$(. 'TOP/plain')\""], ["/bin/tool", "TOP/plain"]),
    ("/usr/bin/npx", ["-y", "@scope/tmp", "TOP/dir"], []),  # not `/tmp`
    ("/usr/bin/npx", ["--package=@scope/tmp", "x"], []),
    ("/usr/bin/npx", ["-y", "github:somebody/tmp"], []),
    ("/usr/bin/npm", ["--prefix", "/opt/x", "start", "--", "TOP/data.db"], ["/opt/x"]),
    ("/usr/bin/npm", ["start", "--prefix", "TOP/dir"], ["TOP/dir"]),
    ("/usr/bin/npm", ["run", "x", "--prefix=TOP/dir"], ["TOP/dir"]),
    ("/usr/bin/npm", ["start", "--", "--prefix", "TOP/dir"], []),
    ("/usr/bin/yarn", ["--cwd", "/opt/x", "run", "start", "TOP/dir"], ["/opt/x"]),
    ("/usr/bin/dotnet", ["run", "--project", "/opt/x", "--", "--db", "TOP/data.db"], ["/opt/x"]),
    ("/usr/bin/cargo", ["run", "--", "TOP/data.db"], []),
    ("/usr/bin/deno", ["run", "-R=TOP/dir", "-A", "-r", "TOP/plain", "TOP/dir"], ["TOP/plain"]),
    ("/usr/bin/python3", ["-I", "TOP/plain", "TOP/data.db"], ["TOP/plain"]),
    ("/usr/bin/python3", ["-O", "-u", "TOP/dir", "TOP/data.db"], ["TOP/dir"]),
    ("/bin/bash", ["-p", "TOP/plain", "TOP/data.db"], ["TOP/plain"]),
    ("/usr/bin/node", ["--no-warnings", "TOP/plain", "TOP/data.db"], ["TOP/plain"]),
]


@pytest.fixture
def top(tmp_path: Path) -> str:
    for name in ("main.py", "hook.js", "tool", "plain", "data.db"):
        (tmp_path / name).touch()
    (tmp_path / "tool").chmod(0o755)
    for name in ("dir", "go", "python"):
        (tmp_path / name).mkdir()
    return str(tmp_path)


@pytest.mark.parametrize(("command", "args", "expected"), COMMANDS)
def test_the_code_of_a_command_line(
    top: str, command: str, args: list[str], expected: list[str]
) -> None:
    args = [word.replace("TOP", top) for word in args]
    found = [one.path for one in loaded(launch_of(command, args, "", {"PATH": ["/s"]}))]
    expected = [command, *(word.replace("TOP", top) for word in expected)]
    assert dict.fromkeys(found) == dict.fromkeys([*expected, "/s"])


VARIABLES = [
    ("NODE_OPTIONS", "--require /a/x.js --import=/b", ["/a/x.js", "/b"]),
    ("PYTHONPATH", "/a:/b", ["/a", "/b"]),
    ("LD_PRELOAD", "/a.so", ["/a.so"]),
    ("npm_config_prefix", "/a", ["/a"]),
    ("DATABASE", "/a/data.db", []),
    ("PATH", "/a:b", ["/a"]),  # a relative one is below an empty folder
    ("PYTHONPATH", "/a b:", ["/a b"]),
    ("NODE_OPTIONS", "--diagnostic-dir=/tmp --import=file:///a", ["///a"]),
    ("JAVA_TOOL_OPTIONS", "-Djava.io.tmpdir=/tmp -javaagent:/a.jar", ["/a.jar"]),
    ("HOME", "/a", ["/a"]),
    ("HOME", "/home/alice", []),  # no server sees it
    ("OPENSSL_CONF", "/a", ["/a"]),
    ("PUPPETEER_EXECUTABLE_PATH", "/bin/sh", ["/bin/sh"]),
    ("ANY", "/a/x.so", ["/a/x.so"]),
    ("GIT_EDITOR", "/a/gone", ["/a/gone"]),
    ("HOME", "/tmp", []),  # each server has its own
    ("npm_config_cache", "/var/tmp/npm", []),
    ("npm_config_cache", "/tmp/../a", ["/tmp/../a"]),
    ("PYTHONPATH", "/tmp/lib", ["/tmp/lib"]),
]


@pytest.mark.parametrize(("name", "value", "expected"), VARIABLES)
def test_the_code_of_variables(name: str, value: str, expected: list[str]) -> None:
    found = loaded(launch_of("/bin/x", [], "", {name: [value]}))
    assert [one.path for one in found] == ["/bin/x", *expected]


FOLDERS = [
    ("/usr/bin/npx", ["-y", "package"], True),  # its `node_modules`
    ("/usr/bin/env", ["A=1", "uvx", "package"], True),
    ("/usr/bin/python3", ["-m", "server"], True),
    ("/usr/bin/python3", ["/s.py"], False),
    ("/usr/bin/node", ["/s.js"], False),
    ("/usr/bin/java", ["-jar", "/s.jar"], False),
    ("/usr/bin/java", ["Main"], True),
    ("/bin/tool", [], False),
    ("/usr/bin/env", ["python3", "-m", "server"], True),
    ("/usr/bin/python3", ["-um", "server"], True),
    ("/usr/bin/python3", ["-Im", "server"], False),
    ("/usr/bin/python3", ["/s.py", "-m", "x"], False),
    ("/usr/bin/java", ["-cp", "/s.jar", "Main"], False),
    ("/usr/bin/node", ["-r", "dotenv/config", "/s.js"], True),
    ("/usr/bin/node", ["-r", "/x/hook.js", "--import=file:///x/y.mjs", "/s.js"], False),
    ("/usr/bin/node", ["-r", "/x/hook.js", "-r", "dotenv/config", "/s.js"], True),
    ("/usr/bin/node", ["/s.js", "-r", "dotenv/config"], False),
    ("/bin/bash", ["-lc", "npx x"], True),
    ("/usr/bin/cargo", ["run"], True),
]


@pytest.mark.parametrize(("command", "args", "is_loaded"), FOLDERS)
def test_the_folder_in_which_it_is_started(
    command: str, args: list[str], *, is_loaded: bool
) -> None:
    found = [one.path for one in loaded(launch_of(command, args, "/srv/x", {}))]
    assert ("/srv/x" in found) is is_loaded


@pytest.mark.parametrize(
    ("name", "value"),
    [("PYTHONPATH", "/a:."), ("NODE_PATH", "x:"), ("NODE_OPTIONS", "-C x -r dotenv/config"),
     ("NODE_OPTIONS", "--import=./x.mjs"), ("JAVA_TOOL_OPTIONS", "-javaagent:./x.jar")],
)  # fmt: skip
def test_relative_paths_in_variables_are_below_that_folder(name: str, value: str) -> None:
    found = [one.path for one in loaded(launch_of("/bin/x", [], "/srv/x", {name: [value]}))]
    assert any(f"{path}/".startswith("/srv/x/") for path in found)


def test_a_program_found_by_name_may_be_a_dangling_link(tmp_path: Path) -> None:
    """Its target can be created after the check."""
    (tmp_path / "node").symlink_to("/srv/gone")
    for command, args in (("/usr/bin/env", ["node"]), ("/usr/bin/npx", ["x"])):
        found = loaded(launch_of(command, args, "", {"PATH": [str(tmp_path)]}))
        assert f"{tmp_path}/node" in [one.path for one in found]


def test_relative_paths_are_below_that_folder(top: str) -> None:
    found = [one.path for one in loaded(launch_of("/usr/bin/node", ["plain", "x"], top, {}))]
    assert found == ["/usr/bin/node", f"{top}/plain"]
    relative = loaded(launch_of("/bin/x", [], top, {"PATH": ["bin:/a"]}))
    assert [one.path for one in relative] == ["/bin/x", f"{top}/bin", "/a"]


@pytest.mark.parametrize(
    ("args", "env"),
    [(["https://x.example.sh"], {}), (["--url=https://x.example/a.php"], {}),
     ([], {"PYTHONPATH": [""]})],
)  # fmt: skip
def test_a_url_and_an_empty_list_are_not(args: list[str], env: dict[str, list[str]]) -> None:
    found = loaded(launch_of("/bin/x", args, "/srv/x", env))
    assert [one.path for one in found] == ["/bin/x"]
