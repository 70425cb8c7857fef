"""Invalid configurations: every error is found in one run, with its place and a fix."""

import json

import pytest

from mcpwrap.config.file_types.config_file import ProgramSettings
from mcpwrap.config.file_types.fields import keys_of
from mcpwrap.config.model import ConfigError, Problem
from mcpwrap.config.parse import MAX_FILE_BYTES, MAX_SERVERS, SourceFile, parse
from mcpwrap.config.remote_server import MAX_HEADERS
from mcpwrap.config.toml_table import MAX_ITEMS
from tests.unit.config.places import (
    BARE,
    ENV,
    HEADERS,
    LIMITS,
    LOCAL,
    OURS,
    REMOTE,
    REMOTE_OURS,
    STEERING,
    Place,
    source,
)
from tests.unit.core.bad_names import BAD_NAMES

EGRESS = "egress = ['x.example', '*.y.example', '@npm']"
OPENED = f"{EGRESS}\nintercept = true"
WRONG: list[tuple[Place, str, str, str]] = [  # where, a line, its key, and part of the problem
    (LOCAL, "retries = 3", "retries", "no such setting"),
    (LOCAL, "Args = []", "Args", "no such setting"),
    (LOCAL, "bearer_token_env_var = 'T'", "bearer_token_env_var", "no such setting"),
    (REMOTE, "args = []", "args", "is for a program"),
    (REMOTE, "cwd = '/'", "cwd", "is for a program"),
    (REMOTE, "env = {}", "env", "is for a program"),
    (REMOTE, "inherits = []", "inherits", "is for a program"),
    (REMOTE, "inherits_any = ['x']", "inherits_any", "is for a program"),
    (REMOTE, "header = {}", "header", "no such setting"),
    (LOCAL, "headers = {}", "headers", "no such setting"),
    (OURS, "agent = ['alice']", "agent", "no such setting"),
    (OURS, "instances = 'per-agent'", "instances", "no such setting"),
    (LIMITS, "memory_bytes = 5", "memory_bytes", "no such setting"),
    (BARE, "", "", "needs exactly one of `command`, `url`"),
    (BARE, "url = 5", "url", "a number where text belongs"),
    (BARE, "command = ['/x']", "command", "a list where text belongs"),
    (BARE, "command = 'npx'", "command", "no PATH is searched"),
    (BARE, "command = './x'", "command", "not an absolute path"),
    (BARE, "command = '/a/../x'", "command", "not in its shortest form"),
    (BARE, "command = ''", "command", "not an absolute path"),
    (BARE, 'command = "/x\\u0000"', "command", "a NUL"),
    (BARE, "url = 'http://x.example/'", "url", "not an https URL"),
    (BARE, "url = 'https://me:pw@x.example/'", "url", "not an https URL"),
    (BARE, "url = 'https://X.example/'", "url", "not an https URL"),
    (BARE, "url = 'https://x.example/#a'", "url", "not an https URL"),
    (BARE, "url = 'https://x..example/'", "url", "not an https URL"),
    (BARE, 'url = "https://x.example/\\n"', "url", "not an https URL"),
    (BARE, "url = 'https://x.example:70000/'", "url", "not a port"),
    (BARE, "url = 'https://x.example:/'", "url", "not a port"),
    (BARE, "url = 'https://localhost/'", "url", "not a host name"),  # Squid lists names
    (BARE, "url = 'https://10.0.0.5/'", "url", "not a host name"),
    (BARE, "url = 'https://bücher.example/'", "url", "not an https URL"),
    (BARE, "url = 'https://x.example/?key=${KEY}'", "url", "cannot hold a secret"),
    (REMOTE, "headers = 'X-Key: 1'", "headers", "text where a table belongs"),
    (HEADERS, "X-Key = 1", "X-Key", "a number where text belongs"),
    (HEADERS, "X-Key = ''", "X-Key", "not a valid header value"),
    (HEADERS, "X-Key = ' a'", "X-Key", "not a valid header value"),
    (HEADERS, "X-Key = '${KEY} '", "X-Key", "not a valid header value"),
    (HEADERS, 'X-Key = "a\\r\\nHost: evil"', "X-Key", "not a valid header value"),
    (HEADERS, 'X-Key = "a\\nb"', "X-Key", "not a valid header value"),
    (HEADERS, 'X-Key = "a\\u0000"', "X-Key", "a NUL"),
    (HEADERS, "X-Key = 'é'", "X-Key", "not a valid header value"),
    (HEADERS, "X-Key = '${key}'", "X-Key", "not a valid secret name"),
    (HEADERS, "X-Key = '${KEY'", "X-Key", "without a closing `}`"),
    (HEADERS, "'' = 'a'", "''", "not a valid header name"),
    (HEADERS, "'X Key' = 'a'", "'X Key'", "not a valid header name"),
    (HEADERS, "'X:' = 'a'", "'X:'", "not a valid header name"),
    (HEADERS, '"X\\n" = "a"', r"'X\n'", "not a valid header name"),
    (HEADERS, "'Ü' = 'a'", r"'\xdc'", "not a valid header name"),
    (HEADERS, f"{'X' * 65} = 'a'", repr("X" * 65), "not a valid header name"),
    (HEADERS, "X-Key = 'a'\nx-key = 'b'", "x-key", "header names ignore case"),
    (HEADERS, "Host = 'a'", "'Host'", "is set by mcpwrap itself"),
    (HEADERS, "content-length = '1'", "'content-length'", "is set by mcpwrap itself"),
    (HEADERS, "Content-Type = 'a'", "'Content-Type'", "is set by mcpwrap itself"),
    (HEADERS, "TRANSFER-ENCODING = 'a'", "'TRANSFER-ENCODING'", "is set by mcpwrap itself"),
    (HEADERS, "Connection = 'a'", "'Connection'", "is set by mcpwrap itself"),
    (HEADERS, "Proxy-Authorization = 'a'", "'Proxy-Authorization'", "is set by mcpwrap itself"),
    (HEADERS, "TE = 'a'", "'TE'", "is set by mcpwrap itself"),
    (HEADERS, "Accept = 'a'", "'Accept'", "is set by mcpwrap itself"),
    (HEADERS, "Cookie = 'a'", "'Cookie'", "is set by mcpwrap itself"),
    (HEADERS, "Mcp-Session-Id = 'a'", "'Mcp-Session-Id'", "is set by mcpwrap itself"),
    (HEADERS, "mcp-param-x = 'a'", "'mcp-param-x'", "is set by mcpwrap itself"),
    (
        REMOTE,
        "bearer_token_env_var = 'T'\nheaders = { authorization = 'Basic ${A}' }",
        "bearer_token_env_var",
        "`headers` has an Authorization header, too",
    ),
    (REMOTE_OURS, "direct = ['10.0.0.5:443']", "direct", "is for a program"),
    (REMOTE_OURS, "workspace = ['/home/alice/a:ro']", "workspace", "is for a program"),
    (REMOTE_OURS, "state = true", "state", "is for a program"),
    (REMOTE_OURS, "umask = '0000'", "umask", "is for a program"),
    (REMOTE_OURS, "cache = true", "cache", "is for a program"),
    (REMOTE_OURS, "secret_files = ['KEY']", "secret_files", "is for a program"),
    (REMOTE_OURS, "transparent = true", "transparent", "by its proxy only"),
    (REMOTE_OURS, "relay = 'direct'", "relay", "no descriptors to pass on"),
    (REMOTE_OURS, "expose = 'sse'", "expose", "cannot be exposed"),
    (REMOTE_OURS, "requests = ['GET x.example/']", "requests", "visible only with `intercept`"),
    (OURS, "expose = ''", "expose", "cannot be exposed"),
    (OURS, "expose = true", "expose", "true or false where text belongs"),
    (OURS, "expose = 'http'\nrelay = 'direct'", "relay", "no descriptors to pass on"),
    (OURS, "direct = ['127.78.0.1:52100']", "direct[0]", "cannot be the address of a server"),
    (OURS, "direct = ['127.79.0.1:52200']", "direct[0]", "cannot be the address of a server"),
    (REMOTE, "bearer_token_env_var = 'token'", "bearer_token_env_var", "not a valid secret name"),
    (LOCAL, "args = '--x'", "args", "text where a list"),
    (LOCAL, "args = ['--x', 5]", "args", "where a list of text belongs"),
    (LOCAL, "args = ['--key', '--token=${KEY}']", "args[1]", "a secret in an argument"),
    (LOCAL, 'args = ["a\\u0000b"]', "args[0]", "a NUL"),
    (LOCAL, f"args = ['{'a' * 32769}']", "args[0]", "over 32 768 characters"),
    (LOCAL, f"args = {[''] * (MAX_ITEMS + 1)}", "args", "257 entries"),
    (LOCAL, "cwd = 'home'", "cwd", "not an absolute path"),
    (LOCAL, "cwd = '/home/'", "cwd", "not in its shortest form"),
    (LOCAL, "env = []", "env", "a list where a table belongs"),
    (ENV, "A = 5", "A", "a number where text belongs"),
    (ENV, "A = '${'", "A", "without a closing `}`"),
    (ENV, "A = '${KEY} ${KEY'", "A", "without a closing `}`"),
    (ENV, "A = '${}'", "A", "not a valid secret name"),
    (ENV, "A = '${${KEY}}'", "A", "not a valid secret name"),
    (ENV, "A = '${key}'", "A", "not a valid secret name"),
    (ENV, "1A = ''", "'1A'", "not a variable name"),
    (ENV, "A-B = ''", "'A-B'", "not a variable name"),
    (ENV, "'' = ''", "''", "not a variable name"),
    (ENV, "'A=B' = ''", "'A=B'", "not a variable name"),
    (ENV, "'É' = ''", r"'\xc9'", "not a variable name"),
    (ENV, '"A\\n" = ""', r"'A\n'", "not a variable name"),
    (LOCAL, "inherits = ['A B']", "inherits[0]", "not a variable name"),
    (LOCAL, "inherits = ['TZ', 'LD_PRELOAD']", "inherits[1]", "no agent may set it"),
    (LOCAL, "inherits_any = ['x', 'LD_PRELOAD']", "inherits_any[1]", "no agent may set it"),
    (LOCAL, "inherits_any = ['http_proxy']", "inherits_any[0]", "no agent may set it"),
    (LOCAL, "inherits_any = 'x'", "inherits_any", "text where a list"),
    (LOCAL, "inherits = ['TZ']\ninherits_any = ['TZ']", "inherits_any", "TZ is also in `inherits`"),
    *((LOCAL, f"inherits = ['{name}']", "inherits[0]", "display), and can decide which code runs")
      for name in STEERING),
    *((LOCAL, f"inherits = ['{name}']", "inherits[0]",
       f"{name} is not of a kind that any agent may choose")
      for name in ("x", "PROJECT", "tz", "LC_X", "TZDIR", "TERM_PROGRAM")),
    (OURS, "agents = 'alice'", "agents", "text where a list"),
    (OURS, "agents = []", "agents", "an empty list"),
    (OURS, "agents = ['alice', 'root']", "agents[1]", "root cannot be an agent"),
    (OURS, "agents = ['Alice']", "agents[0]", "not an account"),
    (OURS, "agents = ['1000']", "agents[0]", "not an account"),
    (OURS, "agents = ['@']", "agents[0]", "not an account"),
    (OURS, "agents = ['*']", "agents[0]", "not an account"),
    (OURS, 'agents = ["alice\\n"]', "agents[0]", "not an account"),
    (OURS, "egress = 'x.example'", "egress", "text where a list"),
    (OURS, "egress = ['x.example', '1.2.3.4']", "egress[1]", "not a host name"),
    (OURS, "egress = ['x.example:70000']", "egress[0]", "not a port"),
    (OURS, "egress = ['@npm', '@cargo']", "egress[1]", "'@cargo' is not a known group"),
    (OURS, "transparent = 'no'", "transparent", "text where true or false belongs"),
    (OURS, "cache = 1", "cache", "a number where true or false belongs"),
    (OURS, "intercept = 'yes'", "intercept", "text where true or false belongs"),
    (OURS, "intercept = true", "intercept", "there is no `egress` to inspect"),
    (OURS, "intercept = true\ndirect = ['10.0.0.5:443']", "intercept", "no `egress`"),
    (OURS, f"{EGRESS}\nrequests = ['GET x.example/']", "requests", "visible only with `intercept`"),
    (OURS, f"{OPENED}\nrequests = ['GET /']", "requests[0]", "does not consist of methods, host"),
    (OURS, f"{OPENED}\nrequests = ['GET z.example/']", "requests", "z.example is not in `egress`"),
    # `*.y.example` does not include y.example, as everywhere
    (OURS, f"{OPENED}\nrequests = ['GET y.example/']", "requests", "y.example is not in `egress`"),
    # the hosts of a group are in this machine's configuration, not in the file
    (OURS, f"{OPENED}\nrequests = ['GET npm.example/']", "requests", "npm.example is not in"),
    (OURS, "direct = ['10.0.0.5:1', '127.77.0.5:3128']", "direct[1]", "127.77.0.5 cannot be the"),
    (OURS, "direct = ['db.example:5432']", "direct[0]", "not an address and port"),
    (OURS, "workspace = ['/home/alice']", "workspace[0]", "does not end with `:rw` or `:ro`"),
    (OURS, "workspace = ['/home/alice:rwx']", "workspace[0]", "does not end with `:rw` or `:ro`"),
    (OURS, "workspace = ['alice:rw']", "workspace[0]", "not an absolute path"),
    (OURS, "workspace = ['/home/../etc:ro']", "workspace[0]", "not in its shortest form"),
    (OURS, "workspace = ['/:ro']", "workspace[0]", "/ is a system directory"),
    (OURS, "workspace = ['/etc:ro']", "workspace[0]", "/etc is a system directory"),
    (OURS, "workspace = ['/run/user/1000/x:rw']", "workspace[0]", "/run is a system directory"),
    (OURS, 'workspace = ["/home/a\\n/b:rw"]', "workspace[0]", "control char"),
    (OURS, "workspace = ['/a/b:ro', '/a/c:ro', '/a/b:rw']", "workspace", "/a/b is listed twice"),
    (OURS, "projects = ['/a/b:ro', '/a/b:rw']", "projects", "/a/b is listed twice"),
    (OURS, "projects = ['/a/b:ro', '/a/b/c:ro']", "projects", "/a/b/c is in another of them"),
    (OURS, "projects = ['/a/b']", "projects[0]", "does not end with `:rw` or `:ro`"),
    (OURS, "projects = ['/etc:ro']", "projects[0]", "/etc is a system directory"),
    (REMOTE_OURS, "projects = ['/a/b:ro']", "projects", "is for a program"),
    (LOCAL, "args = ['${PROJECT}']", "args", "the server has no `projects`"),
    (LOCAL, "args = ['${PROJECTS}']", "args[0]", "a secret in an argument"),
    (
        OURS,
        "projects = ['/a/b:ro']\nworkspace = ['/a/b:ro']",
        "workspace",
        "/a/b shows each project to all sessions",
    ),
    (
        OURS,
        "projects = ['/a/b:ro']\nworkspace = ['/a:ro']",
        "workspace",
        "/a shows each project to all sessions",
    ),
    (OURS, "protect = 'yes'", "protect", "text where true or false belongs"),
    (OURS, "protect_instructions = 0", "protect_instructions", "a number where true or false"),
    (OURS, "umask = 27", "umask", "a number where text belongs"),
    (OURS, "umask = '27'", "umask", "'27' is not a umask"),
    (OURS, "umask = '0o027'", "umask", "'0o027' is not a umask"),
    (OURS, "umask = '0028'", "umask", "'0028' is not a umask"),
    (OURS, "umask = '1022'", "umask", "'1022' is not a umask"),
    (OURS, "umask = 'u=rwx'", "umask", "'u=rwx' is not a umask"),
    (OURS, "umask = '0127'", "umask", "takes rights from the server's own account"),
    (OURS, "state = 'yes'", "state", "text where true or false belongs"),
    (OURS, "state = 1", "state", "a number where true or false belongs"),
    (OURS, "shared = 1979-05-27", "shared", "a date where true or false belongs"),
    (OURS, "secret_files = ['lower']", "secret_files[0]", "not a valid secret name"),
    (OURS, "secret_files = ['../KEY']", "secret_files[0]", "not a valid secret name"),
    (OURS, "secret_files = ['KEY']", "secret_files", "no variable refers to KEY"),
    (OURS, "secret_files = 'KEY'", "secret_files", "text where a list"),
    (OURS, "idle_exit = 900", "idle_exit", "a number where text belongs"),
    (OURS, "idle_exit = '0s'", "idle_exit", "'0s' is not a time"),
    (OURS, "idle_exit = ''", "idle_exit", "is not a time"),
    (OURS, "idle_exit_s = 900", "idle_exit_s", "no such setting"),
    (OURS, "allow_degraded = 'yes'", "allow_degraded", "text where true or false belongs"),
    (OURS, "audit = 'none'", "audit", "'none' is not a form in which the audit stores params"),
    (OURS, "pins = ''", "pins", "is not a way to accept definitions"),
    (OURS, "pins = true", "pins", "true or false where text belongs"),
    (OURS, "pins = 'first-use'\nrelay = 'direct'", "pins", "the gate does not see"),
    (OURS, "pins = 'strict'\nrelay = 'direct'", "pins", "the gate does not see"),
    (OURS, "relay = ''", "relay", "is not a relay mode"),
    (OURS, "relay = 'none'", "relay", "'none' is not a relay mode"),
    (OURS, "relay = true", "relay", "true or false where text belongs"),
    (OURS, "limits = 5", "limits", "a number where a table belongs"),
    (LIMITS, "memory = 1073741824", "memory", "a number where text belongs"),
    (LIMITS, "memory = '15M'", "memory", "not a size"),
    (LIMITS, "memory = '2T'", "memory", "not a size"),
    (LIMITS, "memory = '1GB'", "memory", "not a size"),
    (LIMITS, "state = '1G'", "state", "`state` is not set"),
    (LIMITS, "cache = '1G'", "cache", "`cache` is not set"),
    (LIMITS, "memory = {}", "memory", "a table where text belongs"),
    (LIMITS, "cpu = 150", "cpu", "a number where text belongs"),
    (LIMITS, "cpu = '150'", "cpu", "not a share of a processor"),
    (LIMITS, "cpu = '0%'", "cpu", "not a share of a processor"),
    (LIMITS, "cpu = '20001%'", "cpu", "not a share of a processor"),
    (LIMITS, "tasks = 0", "tasks", "not a whole number from 1 to 32768"),
    (LIMITS, "tasks = 32769", "tasks", "not a whole number from 1 to 32768"),
    (LIMITS, "tasks = 1.5", "tasks", "not a whole number"),
    (LIMITS, "tasks = true", "tasks", "not a whole number"),  # in Python, true is 1
    (LIMITS, "sessions = -1", "sessions", "not a whole number from 1 to 1024"),
    (LIMITS, "sessions = 1025", "sessions", "not a whole number from 1 to 1024"),
    (LIMITS, "sessions = '5'", "sessions", "not a whole number"),
]  # fmt: skip
WHOLE_FILES: list[tuple[str | bytes, str, str, str]] = [  # text, table, key, part of the problem
    ("name = 'x'", "", "name", "no such setting"),
    ("[mcpServers.git]", "", "mcpServers", "no such setting"),  # as agents write it
    ("egress = 5", "", "egress", "a number where a table belongs"),
    ("[egress]\nparents = 'x'", "[egress]", "parents", "no such setting"),
    ("[egress]\nparent = ['10.0.0.1:1']", "[egress]", "parent", "a list where text belongs"),
    ("[egress]\nparent = 'proxy.example:1'", "[egress]", "parent", "not an address and port"),
    (
        "[egress]\nparent = '127.77.0.5:1'",
        "[egress]",
        "parent",
        "cannot be the address of a server",
    ),
    ("approvals = true", "", "approvals", "true or false where a table belongs"),
    ("[approvals]\nsame_uid = 'yes'", "[approvals]", "same_uid", "text where true or false"),
    ("[approvals]\nsameuid = true", "[approvals]", "sameuid", "no such setting"),
    ("[approvals]\nwebhook = 'http://a.example'", "[approvals]", "webhook", "not an https URL"),
    ("[approvals]\nwebhook = 'https://u:p@a.b'", "[approvals]", "webhook", "not an https URL"),
    ("[approvals]\nwebhook = ['https://a.b']", "[approvals]", "webhook", "a list where text"),
    ("mcp_servers = []", "", "mcp_servers", "a list where a table belongs"),
    ("[mcp_servers.a]\nmcpwrap = 5\ncommand = '/x'", "[mcp_servers.a]", "mcpwrap", "a number"),
    (f"#{' ' * MAX_FILE_BYTES}", "", "", "over 1 MiB"),
    (b"# fine\n# \xff", "", "", "not UTF-8 (line 2)"),
    ("[mcp_servers", "", "", "not TOML"),
    ("a = 1\na = 2", "", "", "not TOML"),
    ("\ufeff", "", "", "not TOML"),
    ("a = 2021-02-30", "", "", "not TOML"),
    (f"a = {'[' * 100_000}", "", "", "nested too deeply"),
    (f"a = {'{a=' * 100_000}", "", "", "nested too deeply"),
    (f"{'a.' * 100_000}a = 1", "", "", "nested too deeply"),  # took the standard library minutes
]

BIG = "9" * 5000  # Python converts no number of over 4300 digits, in either direction


def problems(*files: SourceFile) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        parse(files)
    return list(caught.value.problems)


@pytest.mark.parametrize(("place", "line", "key", "fragment"), WRONG)
def test_an_error_has_its_position(place: Place, line: str, key: str, fragment: str) -> None:
    [found] = problems(source(place.with_line(line)))
    assert (found.file, found.table, found.key) == ("f.toml", place.table_of("a"), key)
    assert fragment in found.problem
    assert found.fix


def test_one_run_reports_all_errors() -> None:
    text = "".join(row[0].with_line(row[1], f"s{i}") for i, row in enumerate(WRONG))
    found = problems(source(text))
    expected = [(row[0].table_of(f"s{i}"), row[2]) for i, row in enumerate(WRONG)]
    assert sorted((problem.table, problem.key) for problem in found) == sorted(expected)


def test_one_run_reports_all_errors_of_a_server() -> None:
    text = (
        "[mcp_servers.a]\nargs = ['${A}', '${B}']\nx = 1\n"
        "[mcp_servers.a.mcpwrap]\ny = 1\nlimits = { tasks = 0, sessions = 0, z = 1 }"
    )
    keys = ["", "args[0]", "args[1]", "x", "tasks", "sessions", "z", "y"]
    assert [problem.key for problem in problems(source(text))] == keys


def test_each_unreferenced_secret_file_is_reported_with_its_fix() -> None:
    ours = "[mcp_servers.a.mcpwrap]\nsecret_files = ['Z', 'KEY', 'A']"
    found = problems(source(ENV.with_line(f"X = '${{KEY}} $A'\n{ours}")))
    assert [(problem.problem, problem.fix) for problem in found] == [
        ("no variable refers to A", 'write `env = { X = "${A}" }`'),
        ("no variable refers to Z", 'write `env = { X = "${Z}" }`'),
    ]


@pytest.mark.parametrize(("text", "table", "key", "fragment"), WHOLE_FILES)
def test_a_file_that_is_wrong_as_a_whole(
    text: str | bytes, table: str, key: str, fragment: str
) -> None:
    [found] = problems(source(text))
    assert (found.table, found.key) == (table, key)
    assert fragment in found.problem


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_server_has_a_name_that_can_be_an_account(name: str) -> None:
    [found] = problems(source(f"[mcp_servers.{json.dumps(name)}]\ncommand = '/x'"))
    assert (found.table, found.key) == ("[mcp_servers]", repr(name))
    assert "is not a valid server name" in found.problem


def test_a_server_is_a_command_or_a_url_and_not_both() -> None:
    both = problems(source("[mcp_servers.a]\ncommand = '/x'\nurl = 'https://x.example/'"))
    assert both[0].problem == "needs exactly one of `command`, `url`, `python` and `members`"


def test_a_server_stands_in_one_file_only() -> None:
    text = LOCAL.with_line("")
    [found] = problems(source(text, "a.toml"), source(text, "b.toml"))
    assert (found.file, found.table) == ("b.toml", "[mcp_servers.a]")
    assert found.problem == "is also defined in a.toml"


def test_ineffective_requests_to_an_unlisted_host_are_three_errors() -> None:
    found = problems(source(OURS.with_line("requests = ['GET x.example/']")))
    assert [problem.key for problem in found] == ["intercept", "requests", "requests"]


def test_one_file_only_says_who_approves() -> None:
    # whether the wider or the narrower of two tables counts, one author would be wrong
    first, second = "[approvals]\nsame_uid = true", "[approvals]\nsame_uid = false"
    [found] = problems(source(first, "a.toml"), source(second, "b.toml"))
    assert (found.file, found.table, found.key) == ("b.toml", "[approvals]", "")
    assert found.problem == "is also defined in another file"


@pytest.mark.parametrize("other", ["10.0.0.1:3128", "10.0.0.2:3128"])
def test_one_file_only_names_the_parent(other: str) -> None:
    first, second = "[egress]\nparent = '10.0.0.1:3128'", f"[egress]\nparent = '{other}'"
    [found] = problems(source(first, "a.toml"), source(second, "b.toml"))
    assert (found.file, found.table, found.key) == ("b.toml", "[egress]", "parent")
    assert found.problem == "is also set in another file"


@pytest.mark.parametrize(
    "text",
    [
        f"a = {BIG}",
        LIMITS.with_line(f"tasks = {BIG}"),
        LIMITS.with_line(f"tasks = 0x{BIG}"),
        LIMITS.with_line(f"tasks{'.a' * 3000} = 1"),  # a table in a table, 3000 times
        LOCAL.with_line(f"mcpwrap{'.a' * 3000} = 1"),
    ],
)
def test_what_python_can_hardly_print_is_a_problem_too(text: str) -> None:
    assert problems(source(text))


def test_a_server_stands_once_in_a_file_too() -> None:
    found = problems(source("[[mcp_servers.a]]\ncommand = '/x'"))
    assert str(found[0]).startswith(
        "f.toml, [mcp_servers], a: a list where a table belongs [E-CONFIG-TYPE]\n"
    )


def test_there_is_a_last_server() -> None:
    text = "".join(LOCAL.with_line("", f"s{i}") for i in range(MAX_SERVERS + 1))
    assert [found.problem for found in problems(source(text))] == ["1001 servers"]


def test_a_broken_file_does_not_hide_what_is_wrong_in_the_next() -> None:
    found = problems(source("[", "a.toml"), source("x = 1", "b.toml"))
    assert [problem.file for problem in found] == ["a.toml", "b.toml"]


def test_a_problem_is_one_line_and_its_fix_another() -> None:
    with pytest.raises(ConfigError) as caught:
        parse([source(OURS.with_line("relay = 'none'") + "x = 1")])
    assert str(caught.value).splitlines() == [
        "f.toml, [mcp_servers.a.mcpwrap], relay: 'none' is not a relay mode [E-CONFIG-CHOICE]",
        '  fix: write `"gate"` or `"direct"`',
        "f.toml, [mcp_servers.a.mcpwrap], x: no such setting [E-CONFIG-UNKNOWN-KEY]",
        f"  fix: write one of: {', '.join(keys_of(ProgramSettings))}",
        "2 problems; nothing was changed",
    ]


def test_a_key_cannot_steer_the_terminal_that_shows_its_problem() -> None:
    with pytest.raises(ConfigError) as caught:
        parse([source(r'"a\u001b[2J\nb" = 1')])
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 3


def test_there_is_a_last_header() -> None:
    lines = "\n".join(f"X-{number} = 'a'" for number in range(MAX_HEADERS + 1))
    [found] = problems(source(HEADERS.with_line(lines)))
    assert (found.table, found.key) == ("[mcp_servers.a.headers]", "")
    assert found.problem == "65 headers"


def test_a_url_that_is_wrong_leads_nowhere() -> None:
    [found] = problems(source(BARE.with_line("url = 'https://me@x.example/'")))
    assert found.key == "url"
