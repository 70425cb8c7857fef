"""Python servers and the worker for other machines: what may be written, and what is an error."""

import pytest

from mcpwrap.config.model import (
    Config,
    ConfigError,
    Destination,
    Direct,
    Python,
    Server,
    WorkerListener,
)
from mcpwrap.config.parse import SourceFile, parse
from mcpwrap.config.toml_writer import toml_of
from mcpwrap.core.wire.execution.worker_file import MIB, RunLimits
from tests.unit.config.places import OURS as PROGRAMS
from tests.unit.config.places import source

HEAD = "[mcp_servers.py]\npython = '/usr/bin/python3'\n"
OURS = f"{HEAD}[mcp_servers.py.mcpwrap]\n"
URL = "'https://10.0.0.5:9443'"
WORKER = "[worker]\nlisten = '10.0.0.5:9443'\ncertificate = '/etc/a.pem'\nkey = '/etc/a.key'\n"
ALL_LIMITS = (
    "runs = { memory = '1G', cpu = '50%', tasks = 8, seconds = 5, at_once = 9, code = '1M', "
    "output = '1K' }"
)


def parsed(text: str) -> Config:
    return parse([SourceFile("f.toml", text.encode())])


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        (HEAD, Python(interpreter="/usr/bin/python3")),
        (
            HEAD.replace("/usr/bin", "/opt/python3.13/bin"),
            Python(interpreter="/opt/python3.13/bin/python3"),
        ),
        (
            f"{OURS}egress = ['@pypi']\npackages = ['pandas>=2', 'numpy']",
            Python(interpreter="/usr/bin/python3", packages=("pandas>=2", "numpy")),
        ),
        (
            f"{OURS}worker = 'https://10.0.0.5:9443/'\nworker_ca = '/etc/ssl/certs/w.pem'",
            Python(
                interpreter="/usr/bin/python3",
                worker=Direct("10.0.0.5", 9443),
                worker_ca="/etc/ssl/certs/w.pem",
            ),
        ),
        (
            f"{OURS}worker = 'https://[fd00::5]:9443'",
            Python(interpreter="/usr/bin/python3", worker=Direct("fd00::5", 9443)),
        ),
        (
            f"{OURS}{ALL_LIMITS}",
            Python(
                interpreter="/usr/bin/python3",
                limits=RunLimits(
                    memory_bytes=1024 * MIB,
                    cpu_percent=50,
                    tasks=8,
                    seconds=5,
                    at_once=9,
                    code_bytes=MIB,
                    output_bytes=1024,
                ),
            ),
        ),
    ],
)
def test_what_a_python_server_runs(text: str, runs: Python) -> None:
    server = parsed(text).servers["py"]
    assert server.runs == runs
    assert server.has_network()  # to the worker, at least
    assert server.uses_local_worker() == (runs.worker is None)
    assert server.secrets() == {"WORKER_RPC_TOKEN"}
    assert server.cache
    assert not server.transparent
    assert server.direct == ((runs.worker,) if runs.worker else ())


@pytest.mark.parametrize(
    "text",
    [
        HEAD,
        f"{OURS}agents = ['alice']\nexpose = 'http'\nlimits = {{ sessions = 4 }}",
        f"{OURS}egress = ['@pypi']\npackages = ['numpy']\n{ALL_LIMITS}",
        f"{OURS}worker = 'https://[fd00::5]:9443'\ndirect = ['10.0.0.7:80']",
    ],
)
def test_what_is_written_is_read_again(text: str) -> None:
    server = parsed(text).servers["py"]
    assert parsed(toml_of(server)).servers["py"] == server


@pytest.mark.parametrize(
    ("line", "key", "problem"),
    [
        ("packages = ['numpy']", "packages", "there is no `egress`"),
        ("packages = 'numpy'", "packages", "text where a list of text belongs"),
        (
            "egress = ['@pypi']\nworker = 'https://10.0.0.5:1'\npackages = ['numpy']",
            "packages",
            "of its own interpreter only",
        ),
        ("worker = 'http://10.0.0.5:9443'", "worker", "not an https URL of a worker"),
        ("worker = 'https://worker.example:9443'", "worker", "is not an address and port"),
        ("worker = 'https://10.0.0.5'", "worker", "is not an address and port"),
        ("worker = 'https://127.79.0.1:52200'", "worker", "cannot be the address of a server"),
        ("worker_ca = '/etc/ssl/certs/w.pem'", "worker_ca", "`worker` is not set"),
        (
            "worker = 'https://10.0.0.5:9443'\nworker_ca = '/etc/mcpwrap/w.pem'",
            "worker_ca",
            "in a folder that no server sees",
        ),
        (
            "worker = 'https://10.0.0.5:9443'\nworker_ca = 'w.pem'",
            "worker_ca",
            "not an absolute path",
        ),
        ("runs = { memory = '8M' }", "memory", "not a size from 16M to 1T"),
        ("runs = { memory = 512 }", "memory", "a number where text belongs"),
        ("runs = { cpu = '0%' }", "cpu", "not a share of a processor"),
        ("runs = { tasks = 0 }", "tasks", "not a whole number from 1 to 32768"),
        ("runs = { seconds = 3601 }", "seconds", "not a whole number from 1 to 3600"),
        ("runs = { seconds = '60' }", "seconds", "not a whole number from 1 to 3600"),
        ("runs = { at_once = 33 }", "at_once", "not a whole number from 1 to 32"),
        ("runs = { code = '17M' }", "code", "not a size from 1K to 16M"),
        ("runs = { output = '0K' }", "output", "not a size from 1K to 16M"),
        ("runs = { network = true }", "network", "no such setting"),
        ("workspace = ['/home/alice/a:ro']", "workspace", "is for a program"),
        ("state = true", "state", "is for a program"),
        ("umask = '0022'", "umask", "is for a program"),
        ("secret_files = ['A']", "secret_files", "is for a program"),
        ("writable_command = true", "writable_command", "is for a program"),
        ("transparent = true", "transparent", "is for a program"),
        ("relay = 'direct'", "relay", "is for a program"),
        ("pins = 'strict'", "pins", "is for a program"),
        ("oauth = true", "oauth", "is only valid for a server with `url`"),
    ],
)
def test_what_is_wrong_is_said_where_it_is(line: str, key: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(OURS + line)
    [found] = caught.value.problems
    assert found.key == key
    assert problem in found.problem


@pytest.mark.parametrize(
    ("line", "key", "problem"),
    [
        ("args = ['-c']", "args", "is for a program"),
        ("env = { A = '1' }", "env", "is for a program"),
        ("cwd = '/tmp'", "cwd", "is for a program"),
        ("inherits = ['TZ']", "inherits", "is for a program"),
        ("url = 'https://a.example/'", "", "needs exactly one of"),
        ("command = '/usr/bin/x'", "", "needs exactly one of"),
        ("packages = ['numpy']", "packages", "no such setting"),
    ],
)
def test_settings_of_programs_are_refused(line: str, key: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(HEAD + line)
    assert (key, problem) in {
        (p.key, problem) for p in caught.value.problems if problem in p.problem
    }


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("python3", "not an absolute path"),
        ("/home/alice/.venv/bin/python", "not in /usr or /opt"),
        ("/usr/../home/x", "not in its shortest form"),
        ("/opt/my python/bin/python3", "a unit file cannot have"),
        ("/opt/%h/bin/python3", "a unit file cannot have"),
        ("/opt/x:/y/bin/python3", "a unit file cannot have"),
    ],
)
def test_an_interpreter_must_be_where_runs_see_it(path: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parsed(HEAD.replace("/usr/bin/python3", path))


def test_a_path_is_one_word_of_a_unit_file() -> None:
    # A line break would be a directive of its own, which root executes.
    path = "/opt/x/bin/python3\\nExecStartPre=+/usr/bin/touch /x"
    with pytest.raises(ConfigError, match="a unit file cannot have"):
        parsed(HEAD.replace("'/usr/bin/python3'", f'"{path}"'))
    with pytest.raises(ConfigError, match="a unit file cannot have"):
        parsed(WORKER.replace("'/etc/a.key'", '"/etc/a.key\\nUser=root"'))


@pytest.mark.parametrize("name", ["worker", "a" * 25])
def test_a_name_must_leave_room_for_the_accounts_of_runs(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the name of a Python server"):
        parsed(HEAD.replace("mcp_servers.py", f"mcp_servers.{name}"))


@pytest.mark.parametrize("name", ["worker-1", "a" * 24])
def test_other_names_do(name: str) -> None:
    assert name in parsed(HEAD.replace("mcp_servers.py", f"mcp_servers.{name}")).servers


def test_settings_of_python_servers_are_no_settings_of_others() -> None:
    for line in ("packages = ['numpy']", "runs = { tasks = 1 }", "worker = 'https://10.0.0.5:1'"):
        with pytest.raises(ConfigError, match="no such setting"):
            parse([source(PROGRAMS.with_line(line))])


@pytest.mark.parametrize(
    ("text", "problem", "place"),
    [
        (f"{HEAD}worker = {URL}", "no such setting", "move it to [mcp_servers.py.mcpwrap]"),
        (f"{HEAD}limits = {{ tasks = 9 }}", "no such setting", "to [mcp_servers.py.mcpwrap]"),
        (f"worker = {URL}\n{HEAD}", "is a table here", "in [mcp_servers.NAME.mcpwrap] of a"),
        (f"{HEAD}[[worker]]", "a list where a table belongs", "write `worker = { … }`"),
        # Misspelt, and of a server that has no such setting anywhere.
        (f"{HEAD}workers = {URL}", "no such setting", "write one of: python, mcpwrap"),
        (f"[mcp_servers.a]\ncommand = '/x'\nworker = {URL}", "no such setting", "write one of: co"),
    ],
)
def test_of_a_setting_in_the_wrong_table_the_right_one_is_named(
    text: str, problem: str, place: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(text)
    (found,) = caught.value.problems
    assert problem in found.problem
    assert place in found.fix
    moved = parsed(f"{OURS}worker = {URL}").servers["py"].runs  # the twin
    assert isinstance(moved, Python)
    assert moved.worker


@pytest.mark.parametrize(
    ("table", "moved", "refused"),
    [
        (HEAD, "direct = []", ("workspace = []", "oauth = true", "relay = 'direct'")),
        ("[mcp_servers.py]\nurl = 'https://a.example/'\n", "oauth = true",
         ("workspace = []", "direct = []", "cache = true", "transparent = true", "worker = 'x'")),
        ("[mcp_servers.py]\ncommand = '/x'\n", "workspace = []",
         ("oauth = true", "packages = []")),
    ],
    ids=["Python", "remote", "program"],
)  # fmt: skip
def test_no_setting_is_sent_to_a_table_that_refuses_it(
    table: str, moved: str, refused: tuple[str, ...]
) -> None:
    for line in (moved, *refused):
        with pytest.raises(ConfigError) as caught:
            parsed(f"{table}{line}")
        (found,) = caught.value.problems
        assert found.problem == "no such setting"
        fix = "move it to [mcp_servers.py.mcpwrap]" if line == moved else "write one of: "
        assert found.fix.startswith(fix), line


def test_a_worker_for_other_machines() -> None:
    assert parsed(WORKER).worker == WorkerListener(
        listen=Direct("10.0.0.5", 9443),
        interpreter="/usr/bin/python3",
        certificate="/etc/a.pem",
        key="/etc/a.key",
    )
    text = f"{WORKER}python = '/opt/p/bin/python3'\nruns = {{ tasks = 9 }}\n{HEAD}"
    config = parsed(text)
    assert config.worker
    assert config.worker.interpreter == "/opt/p/bin/python3"
    assert config.pools() == {"py": RunLimits(), "worker": RunLimits(tasks=9)}


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("[worker]", {"listen", "certificate", "key"}),
        (WORKER.replace("listen", "at"), {"listen", "at"}),
        (WORKER.replace("10.0.0.5", "worker.example"), {"listen"}),
        (WORKER.replace("10.0.0.5", "0.0.0.0"), {"listen"}),
        (WORKER.replace("certificate = '/etc/a.pem'\n", ""), {"certificate"}),
        (WORKER.replace("key = '/etc/a.key'\n", ""), {"key"}),
        (WORKER.replace("'/etc/a.key'", "'a.key'"), {"key"}),
    ],
)
def test_it_is_never_reached_without_tls(text: str, keys: set[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(text)
    assert {problem.key for problem in caught.value.problems} == keys


def test_there_is_one_worker() -> None:
    files = [SourceFile("a.toml", WORKER.encode()), SourceFile("b.toml", WORKER.encode())]
    with pytest.raises(ConfigError, match="also defined in another file"):
        parse(files)


def test_a_server_may_list_hosts_instead_of_the_index() -> None:
    text = f"{OURS}egress = ['pypi.example']\npackages = ['numpy']"
    server: Server = parsed(text).servers["py"]
    assert server.egress == (Destination("pypi.example", 443, with_subdomains=False),)
