"""Desired state of a configuration: files, links, accounts, and the access list."""

import pytest

from mcpwrap.core.wire.server_files import (
    AccessRule,
    OAuth,
    RemoteSpec,
    SecretPart,
    ServerSpec,
    decode_spec,
)
from mcpwrap.core.wire.webhook_file import Webhook, decode
from mcpwrap.errors import UsageError
from mcpwrap.plan import paths
from mcpwrap.plan.desired import Ids, desired
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.registry import Registry, allocate
from tests.unit.plan.configs import GIT, PYTHON, SECRET, STATE
from tests.unit.plan.machine import SOFTWARE, parsed, wanted

FULL = """
[mcp_servers.git]
command = "/usr/bin/git-mcp"
args = ["--é", ""]
cwd = "/srv"
env = { A = "1", B = "", C = "x-${KEY}" }
inherits = ["TZ"]
inherits_any = ["PROJECT"]
[mcp_servers.git.mcpwrap]
state = true
umask = "0027"
allow_degraded = true
agents = ["alice"]
secret_files = ["KEY"]
idle_exit = "90s"
limits = { memory = "16M", tasks = 5, cpu = "150%", sessions = 2 }
"""


def test_a_wrapper_is_told_all_that_it_runs() -> None:
    text = wanted(FULL, Observed()).server_files["git"][paths.spec("git")]
    assert decode_spec(text.encode()) == ServerSpec(
        name="git",
        command="/usr/bin/git-mcp",
        args=("--é", ""),
        cwd="/srv",
        egress_env={},
        env={"A": ("1",), "B": (), "C": ("x-", SecretPart("KEY"))},
        inherits=("TZ",),
        inherits_any=("PROJECT",),
        secrets=("KEY",),
        secret_files=("KEY",),
        idle_exit_s=90,
        cpu_percent=150,
        state=True,
        allow_degraded=True,
        sessions=2,
        memory_bytes=16 * 1024**2,
        tasks=5,
        umask=0o027,
    )


def test_a_server_has_its_files_account_and_link() -> None:
    want = wanted(GIT, Observed())
    uid = want.uid_by_name["git"]
    assert want.registry.uid_of("git") == uid
    assert list(want.server_files["git"]) == [paths.spec("git"), paths.drop_in("git")]
    assert list(want.sysusers_files) == ["/var/lib/mcpwrap/sysusers/git.conf"]
    assert want.links == {"/var/lib/mcpwrap/bin/mcp-wrapper-git": "/usr/bin/mcpwrap-connect"}


@pytest.mark.parametrize(
    ("ours", "uids", "gids"),
    [
        ("", (), (990,)),  # the group mcpwrap
        ("agents = ['alice']", (1000,), ()),
        ("agents = ['bob', '@mcpwrap', 'alice']", (1000, 1001), (990,)),
        ("agents = ['alice']\nstate = true", (1000,), ()),
        ("agents = ['alice', 'bob']\nstate = true\nshared = true", (1000, 1001), ()),
        ("state = true\nshared = true", (), (990,)),
    ],
)
def test_who_is_admitted(ours: str, uids: tuple[int, ...], gids: tuple[int, ...]) -> None:
    runs = f"{GIT}inherits = ['TZ']\ninherits_any = ['X']\n"
    want = wanted(f"{runs}[mcp_servers.git.mcpwrap]\n{ours}", Observed())
    members = (1000, 1002) if gids else ()  # root is not an agent
    admission = AccessRule(
        uids=uids, gids=gids, inherits=("TZ",), inherits_any=("X",), members=members, sessions=16
    )
    assert want.admissions.by_server == {"git": admission}


@pytest.mark.parametrize(
    ("agents", "fragment"),
    [
        ("['carol']", "has no account 'carol'"),
        ("['@dev']", "has no group 'dev'"),
        ("['mcpwrap']", "has no account 'mcpwrap'"),  # a group needs its @
        ("['@alice']", "has no group 'alice'"),
        ("['alice', 'bob']", "more than one account would share"),
        ("['@mcpwrap']", "more than one account would share"),  # any account may join it later
    ],
)
def test_agents_that_cannot_be_admitted_are_refused(agents: str, fragment: str) -> None:
    with pytest.raises(UsageError, match=fragment) as caught:
        wanted(STATE.replace("['alice']", agents), Observed())
    assert caught.value.where == "[mcp_servers.git.mcpwrap], agents"
    assert "nothing was changed" in caught.value.problem


@pytest.mark.parametrize("agents", ["['alice', 'bob']", "['@mcpwrap']", "['alice', '@mcpwrap']"])
@pytest.mark.parametrize(
    ("text", "private"),
    [
        (STATE, "state"),
        (SECRET, "secrets"),
        (f"{SECRET}state = true\n", "state and secrets"),
    ],
)
def test_what_is_private_is_shared_only_on_purpose(text: str, agents: str, private: str) -> None:
    text = text.replace("['alice']", agents)
    with pytest.raises(UsageError) as caught:
        wanted(text, Observed())
    assert caught.value.problem == (
        f"more than one account would share this server's {private}; nothing was changed"
    )
    assert "`shared = true`" in caught.value.fix
    assert wanted(f"{text}shared = true\n", Observed()).admissions.by_server.keys() == {"git"}


def test_a_secret_of_one_account_is_shared_with_nobody() -> None:
    assert wanted(SECRET, Observed()).admissions.by_server["git"].uids == (1000,)


@pytest.mark.parametrize("relay", ["gate", "direct"])
def test_the_gate_is_told_how_to_relay(relay: str) -> None:
    want = wanted(f"{GIT}[mcp_servers.git.mcpwrap]\nrelay = '{relay}'\n", Observed())
    assert want.admissions.by_server["git"].relay == relay


@pytest.mark.parametrize(
    ("ours", "pins"),
    [("", "first-use"), ("pins = 'strict'", "strict"), ("pins = 'off'", "off"),
     ("relay = 'direct'", "off")],  # there it has no effect
)  # fmt: skip
def test_the_gate_is_told_how_definitions_are_accepted(ours: str, pins: str) -> None:
    want = wanted(f"{GIT}[mcp_servers.git.mcpwrap]\n{ours}\n", Observed())
    assert want.admissions.by_server["git"].pins == pins


def test_the_gate_is_told_the_folders_that_a_server_may_write() -> None:
    folders = "workspace = ['/home/alice/a:ro', '/home/alice/b:rw', '/home/alice/c:rw']"
    want = wanted(f"{GIT}[mcp_servers.git.mcpwrap]\nagents = ['alice']\n{folders}\n", Observed())
    assert want.admissions.by_server["git"].workspaces == ("/home/alice/b", "/home/alice/c")


def test_the_gate_is_told_which_server_executes_code() -> None:
    rules = wanted(f"{GIT}{PYTHON}", Observed()).admissions.by_server
    assert {name: rule.executes for name, rule in rules.items()} == {"git": False, "py": True}
    assert {name: rule.pins for name, rule in rules.items()} == {"git": "first-use", "py": "off"}


@pytest.mark.parametrize(
    ("more", "secrets", "secret_files"),
    [
        ("", ("A", "B"), ()),
        ("secret_files = ['B', 'A']\n", ("A", "B"), ("A", "B")),
        ("secret_files = ['B']\n", ("A", "B"), ("B",)),
    ],
)
def test_a_wrapper_is_told_its_secrets_in_the_order_of_their_keys(
    more: str, secrets: tuple[str, ...], secret_files: tuple[str, ...]
) -> None:
    text = SECRET.replace("${TOKEN}", "${B}${A}${B}") + more
    spec = decode_spec(wanted(text, Observed()).server_files["git"][paths.spec("git")].encode())
    assert (spec.secrets, spec.secret_files) == (secrets, secret_files)


REMOTE = """
[mcp_servers.git]
url = "https://mcp.example.com:8443/git?x"
bearer_token_env_var = "TOKEN"
headers = { X-Tenant = "t-${TENANT}", X-Version = "2" }
[mcp_servers.git.mcpwrap]
agents = ["alice"]
"""


def test_for_a_url_a_program_of_ours_is_run_and_told_what_to_send() -> None:
    want = wanted(REMOTE, Observed())
    spec = decode_spec(want.server_files["git"][paths.spec("git")].encode())
    assert (spec.command, spec.args, spec.env) == ("/usr/libexec/mcpwrap/mcpwrap-remote", (), {})
    assert (spec.cwd, spec.inherits, spec.secret_files) == ("", (), ())
    assert spec.secrets == ("TENANT", "TOKEN")
    assert spec.remote == RemoteSpec(
        url="https://mcp.example.com:8443/git?x",
        headers={
            "X-Tenant": ("t-", SecretPart("TENANT")),
            "X-Version": ("2",),
            "Authorization": ("Bearer ", SecretPart("TOKEN")),
        },
    )
    assert spec.egress_env["HTTPS_PROXY"] == "http://127.77.6.234:3128"
    assert list(want.server_files["git"]) == [paths.spec("git"), paths.drop_in("git")]
    assert not want.front  # mcpwrap's program knows the proxy
    assert "mcp.example.com" in want.proxies["proxy-1"].replace("\\", "")


def test_a_url_need_not_have_a_secret() -> None:
    want = wanted(REMOTE.splitlines()[1] + "\nurl = 'https://a.example/'\n", Observed())
    spec = decode_spec(want.server_files["git"][paths.spec("git")].encode())
    assert (spec.remote, spec.secrets) == (RemoteSpec(url="https://a.example/", headers={}), ())


def test_a_server_to_which_a_person_logs_in() -> None:
    text = "[mcp_servers.git]\nurl = 'https://a.example/'\n[mcp_servers.git.mcpwrap]\n"
    want = wanted(f"{text}agents = ['alice']\noauth = {{ scopes = ['x'] }}", Observed())
    spec = decode_spec(want.server_files["git"][paths.spec("git")].encode())
    assert spec.remote == RemoteSpec(
        url="https://a.example/", headers={}, oauth=OAuth(scopes=("x",))
    )
    assert spec.has_oauth()
    assert not spec.state  # its home is the session's
    assert spec.secrets == ("MCPWRAP_OAUTH_KEY",)
    drop_in = want.server_files["git"][paths.drop_in("git")]
    assert "# A persistent folder for the login.\nStateDirectory=mcpwrap/state/git\n" in drop_in
    assert "mcpwrap-mint start git" in drop_in
    assert want.admissions.by_server["git"].login


def test_to_others_nobody_logs_in() -> None:
    want = wanted(REMOTE, Observed())
    assert not want.admissions.by_server["git"].login
    assert "StateDirectory" not in want.server_files["git"][paths.drop_in("git")]


def test_agents_share_a_login_only_if_it_is_written() -> None:
    text = (
        "[mcp_servers.git]\nurl = 'https://a.example/'\n[mcp_servers.git.mcpwrap]\noauth = true\n"
    )
    with pytest.raises(UsageError, match="share this server's secrets"):
        wanted(text, Observed())


def test_a_program_is_no_remote_server() -> None:
    text = wanted(GIT, Observed()).server_files["git"][paths.spec("git")]
    assert decode_spec(text.encode()).remote is None


@pytest.mark.parametrize(
    ("text", "http_uids"),
    [
        (GIT, ()),
        (REMOTE, (1000,)),
        (f"{GIT}[mcp_servers.git.mcpwrap]\nexpose = 'http'", (1000, 1002)),  # root is not an agent
        (f"{GIT}[mcp_servers.git.mcpwrap]\nexpose = 'http'\nagents = ['bob', 'alice']",
         (1000, 1001)),
        (f"{GIT}[mcp_servers.git.mcpwrap]\nexpose = 'http'\nagents = ['alice', '@mcpwrap']",
         (1000, 1002)),
    ],
)  # fmt: skip
def test_the_gate_is_told_whom_a_listener_may_speak_for(
    text: str, http_uids: tuple[int, ...]
) -> None:
    want = wanted(text, Observed())
    assert want.admissions.by_server["git"].http_uids == http_uids
    assert [(each.server, each.uid) for each in want.listeners.values()] == [
        ("git", uid) for uid in http_uids
    ]


def test_a_group_without_members_has_no_listener() -> None:
    ids = Ids({}, {"mcpwrap": 990})
    config = parsed(f"{GIT}[mcp_servers.git.mcpwrap]\nexpose = 'http'")
    want = desired(config, allocate(["git"], Registry(), ()), ids, SOFTWARE, {})
    assert (want.listeners, want.admissions.by_server["git"].gids) == ({}, (990,))


def test_a_url_with_a_secret_is_shared_only_on_purpose() -> None:
    more = REMOTE.replace('["alice"]', '["alice", "bob"]')
    with pytest.raises(UsageError, match="this server's secrets"):
        wanted(more, Observed())
    assert wanted(f"{more}shared = true\n", Observed()).listeners.keys() == {
        "git.1000",
        "git.1001",
    }


@pytest.mark.parametrize("same_uid", [False, True])
def test_the_gate_is_told_whether_a_proof_is_needed(same_uid: bool) -> None:  # noqa: FBT001
    text = f"[approvals]\nsame_uid = {str(same_uid).lower()}\n{GIT}"
    assert wanted(text, Observed()).admissions.same_uid_approves is same_uid


def test_the_webhook_is_told_where_to_post() -> None:
    assert not wanted(GIT, Observed()).webhook
    text = wanted(f"[approvals]\nwebhook = 'https://a.example/b?c'\n{GIT}", Observed()).webhook
    assert decode(text.encode()) == Webhook(url="https://a.example/b?c")
