"""Bug report: what is on the list is in it, and nothing else of checks, units, logs, settings."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.config.model import (
    Config,
    Destination,
    Direct,
    Group,
    Hub,
    HubMember,
    Local,
    Python,
    RemoteServer,
    SecretRef,
    Server,
    Workspace,
)
from mcpwrap.core import bug_report
from mcpwrap.core.bug_report import HIDDEN, JournalEntry, Vocabulary
from mcpwrap.core.doctor import Check, failed, good
from mcpwrap.machine.prerequisites.mechanisms import MECHANISMS, Mechanism

SECRET = "hunter2-S3CRET"
LIB = "/usr/lib/mcpwrap/mcpwrap"
WORDS = Vocabulary(
    label_by_server={"git": "server-1", "web-1": "server-2", "7": "server-3"},
    units=frozenset({
        "mcpwrap-gate.socket", "mcpwrap@.service", "mcpwrap-http@.socket", "mcpwrap-job@.service",
        "mcpwrap-squid-proxy@.service", "mcpwrap-address@.service",
    }),
    errors=frozenset({"E-DOCTOR-SESSION", "E-POLICY-FILE-MISSING"}),
    modules=frozenset({"mcpwrap/as_gate/main.py"}),
)  # fmt: skip


@pytest.mark.parametrize(
    ("unit", "shown"),
    [
        ("mcpwrap-gate.socket", "mcpwrap-gate.socket"),
        ("mcpwrap@git.service", "mcpwrap@server-1.service"),
        ("mcpwrap-http@web-1.1000.socket", "mcpwrap-http@server-2.socket"),  # without the UID
        ("mcpwrap-job@web-1-3.service", "mcpwrap-job@server-2-3.service"),
        ("mcpwrap-squid-proxy@1.service", "mcpwrap-squid-proxy@1.service"),
        ("mcpwrap@7.service", "mcpwrap@server-3.service"),  # a name, not a number
        ("mcpwrap@gone.service", f"mcpwrap@{HIDDEN}.service"),
        ("mcpwrap-address@127.77.0.1.service", f"mcpwrap-address@{HIDDEN}.service"),
        ("mcpwrap-acme.service", HIDDEN),  # no unit of the package
        ("ssh.service", HIDDEN),
        ("", HIDDEN),
    ],
)
def test_units_have_labels_for_servers(unit: str, shown: str) -> None:
    assert WORDS.unit(unit) == shown


@pytest.mark.parametrize(
    ("what", "title"),
    [
        ("kernel", "kernel"),
        ("root's files", "root's files"),
        ("approvals", "approvals"),
        ("approvals of calls of alice, bob", "approvals of calls of"),
        ("approvals by alice", "approvals by"),
        ("approval forms: alice: claude-code 2.1", "approval forms"),
        ("worker: TLS", "worker: TLS"),
        ("mcpwrap-gate.socket", "mcpwrap-gate.socket"),
        ("git", "server-1"),
        ("git: policy", "server-1: policy"),
        ("git: a session of alice", "server-1: a session of"),
        ("git: read /home/alice/.ssh", "server-1: read"),
        ("git: read sealed secrets", "server-1: read sealed secrets"),
        ("git: reach an address past Squid", "server-1: reach an address past Squid"),
        ("git: reach api.example:443", "server-1: reach"),
        ("git: reach the worker as alice", "server-1: reach the worker"),
        ("git: write in /home/alice/project", "server-1: write in"),
        ("git: run print(1)", "server-1: run print(1)"),
        ("git: Claude Code", "server-1: Claude Code"),  # of a hub: an agent that is known
        ("listener: limits of runs", f"{HIDDEN}: limits of runs"),
        ("/etc/mcpwrap/x", "another check"),
        (f"git: {SECRET}", "another check"),
        (SECRET, "another check"),
    ],
)
def test_titles_are_those_of_mcpwrap(what: str, title: str) -> None:
    assert WORDS.title(what) == title


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: each.code)
def test_what_apply_needs_of_the_machine_is_named(mechanism: Mechanism) -> None:
    assert WORDS.title(mechanism.name) == mechanism.name


def test_a_check_is_its_state_its_title_and_the_names_of_errors() -> None:
    checks = [
        failed("git: a session of alice", f"{SECRET} E-{SECRET} [E-DOCTOR-SESSION]", SECRET),
        good("kernel", "6.12, E-MINE-OWN"),
    ]
    assert list(bug_report.check_lines(checks, WORDS)) == [
        "- failed: server-1: a session of [E-DOCTOR-SESSION]",
        "- good: kernel",
    ]


@pytest.mark.parametrize(
    ("fact", "value", "shown"),
    [
        ("mcpwrap", "0.2.0.dev0", "0.2.0.dev0"),
        ("mcpwrap", f"0.2.0-{SECRET}", "not known"),
        ("package", "deb 0.2.0~dev0+deb13", "deb 0.2.0~dev0+deb13"),
        ("package", "from source", "from source"),
        ("package", f"deb {SECRET}", "not known"),
        ("commit", "8734ae83-modified", "8734ae83-modified"),
        ("commit", "", "not known"),
        ("Python", "3.14.0rc2", "3.14.0rc2"),
        ("distribution", "debian 13", "debian 13"),
        ("distribution", "opensuse-leap 15.6", "opensuse-leap 15.6"),
        ("distribution", "debian", "debian"),  # testing
        ("distribution", "acme-linux 1", "not known"),
        ("kernel", "6.12.48+deb13-amd64", "6.12.48+deb13-amd64"),
        ("kernel", "6.11.4-301.fc41.x86_64", "6.11.4-301.fc41.x86_64"),
        ("kernel", "6.4.0-150600.23.65-default", "6.4.0-150600.23.65-default"),
        ("kernel", "6.1.0-acme-db01", f"6.1.0-{HIDDEN}-{HIDDEN}"),
        ("LSMs", "lockdown,landlock,acme", f"lockdown, landlock, {HIDDEN}"),
        ("LSMs", "", "not known"),
        ("Squid", "5.7", "5.7"),
        ("cgroup", "v2", "v2"),
    ],
)
def test_a_fact_has_a_known_form(fact: str, value: str, shown: str) -> None:
    assert list(bug_report.fact_lines({fact: value})) == [f"- {fact}: {shown}"]


def test_a_unit_has_states_and_restarts() -> None:
    states = {"ActiveState": "failed", "SubState": "failed", "Result": "exit-code"}
    found = {
        "mcpwrap@git.service": {**states, "NRestarts": "3"},
        "mcpwrap-gate.socket": {"ActiveState": SECRET, "SubState": "listening", "NRestarts": "0"},
    }
    assert list(bug_report.unit_lines(found, WORDS)) == [
        "- mcpwrap-gate.socket: - listening -",
        "- mcpwrap@server-1.service: failed failed exit-code, 3 restarts",
    ]


def test_the_journal_is_counted_and_not_copied() -> None:
    git, gate = "mcpwrap@git.service", "mcpwrap-gate.socket"
    entries = [
        JournalEntry(unit=git, message=f"token {SECRET} [E-DOCTOR-SESSION]", at_s=60.0),
        JournalEntry(unit=git, message=f"{SECRET} [E-DOCTOR-SESSION]", at_s=120.0),
        JournalEntry(unit=git, message=f"Authorization: Bearer {SECRET}"),
        JournalEntry(unit=git, message="Failed with result", result="exit-code"),
        JournalEntry(unit=git, message="x", result=SECRET),
        JournalEntry(unit=gate, message=f'|   File "{LIB}/as_gate/main.py", line 9, in f'),
        JournalEntry(unit=gate, message=f"| KeyError: '{SECRET}'"),
        JournalEntry(unit=gate, message=f'  File "{LIB}/{SECRET.lower()}.py", line 9'),
        JournalEntry(unit="x.service", message=f"{SECRET}Error: x"),
    ]  # fmt: skip
    trace = "traceback, mcpwrap/as_gate/main.py:9"
    none = "1 x a line without a name, the last 1970-01-01 00:00 UTC"
    assert list(bug_report.journal_lines(entries, WORDS)) == [
        f"- mcpwrap-gate.socket: {none}",
        "- mcpwrap-gate.socket: 1 x traceback, KeyError, the last 1970-01-01 00:00 UTC",
        f"- mcpwrap-gate.socket: {none.replace('a line without a name', trace)}",
        "- mcpwrap@server-1.service: 2 x E-DOCTOR-SESSION, the last 1970-01-01 00:02 UTC",
        f"- mcpwrap@server-1.service: {none.replace('1 x', '2 x')}",
        "- mcpwrap@server-1.service: 1 x result exit-code, the last 1970-01-01 00:00 UTC",
        f"- {HIDDEN}: {none}",
    ]  # fmt: skip


LOCAL = (
    "Local by npx: args (2), cwd, env (1), agents (1), egress (2), workspace (1), umask, state, "
    "limits.tasks, secrets (1)"
)
HOST = Destination(SECRET, 443, with_subdomains=False)
SERVER = Server(name=SECRET, runs=Local(command=f"/opt/{SECRET}"))


@pytest.mark.parametrize(
    ("server", "line"),
    [
        (SERVER, "Local: no settings"),
        (
            replace(
                SERVER,
                runs=Local(
                    command="/usr/bin/npx",
                    args=("-y", SECRET),
                    cwd=f"/{SECRET}",
                    env={SECRET: (SECRET, SecretRef(SECRET))},
                ),
                egress=(HOST, Group("npm")),
                workspace=(Workspace(f"/{SECRET}", is_writable=True),),
                agents=(SECRET,),
                state=True,
                umask=0o77,
                limits=replace(SERVER.limits, tasks=7),
            ),
            LOCAL,
        ),
        (
            replace(SERVER, runs=RemoteServer(url=SECRET, bearer_token_env_var=SECRET)),
            "RemoteServer: bearer_token_env_var, agents (1), secrets (1)",
        ),
        (
            replace(SERVER, runs=Python(interpreter="/x", worker=Direct("10.0.0.1", 1))),
            "Python: worker, agents (1), secrets (1)",
        ),
        (
            replace(SERVER, runs=Hub(members=(HubMember(name=SECRET, namespace=SECRET),))),
            "Hub: members (1), agents (1)",
        ),
    ],
)
def test_a_server_is_its_settings_by_name_and_number(server: Server, line: str) -> None:
    told = bug_report.server_line("server-1", server, server.runs, len(server.secrets()))
    if server is SERVER:
        line = "Local: agents (1)"  # the group that may use each server
    assert told == f"- server-1: {line}"


def test_the_whole_configuration_is_counted() -> None:
    config = Config(servers={}, file_by_server={}, parent=Direct("10.0.0.1", 1))
    assert list(bug_report.settings(config)) == ["parent"]


def test_labels_follow_the_order_of_names() -> None:
    assert bug_report.labels(["b", "a"], with_names=False) == {"a": "server-1", "b": "server-2"}
    assert bug_report.labels(["b", "a"], with_names=True) == {"a": "a", "b": "b"}


# Every text of a machine, with a secret somewhere in it.
TEXTS = st.text(max_size=20).flatmap(
    lambda a: st.sampled_from(
        ["{}", "git: {}", "git: read {}", "mcpwrap@{}.service", "[E-{}]", "approvals by {}",
         "{}Error: x", 'File "/usr/lib/mcpwrap/mcpwrap/{}.py", line 3', "6.1.0-{}", "{},landlock"]
    ).map(lambda form: a + form.format(SECRET))
)  # fmt: skip


@given(texts=st.lists(TEXTS, min_size=4, max_size=4))
def test_no_text_of_a_machine_is_copied(texts: list[str]) -> None:
    what, found, unit, message = texts
    facts = dict.fromkeys(["kernel", "LSMs", "package", "commit", "distribution", "Squid"], found)
    told = "\n".join([
        *bug_report.fact_lines(facts),
        *bug_report.check_lines([Check(what=what, state="failed", found=found, fix=found)], WORDS),
        *bug_report.unit_lines({unit: dict.fromkeys(["ActiveState", "Result"], found)}, WORDS),
        *bug_report.journal_lines(
            [JournalEntry(unit=unit, message=message, result=found)], WORDS
        ),
    ])  # fmt: skip
    assert "hunter2" not in told
    assert "S3CRET" not in told
