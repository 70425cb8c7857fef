"""What the configuration comes to: files, links, accounts, and who is admitted."""

import pytest

from mcpwrap.core.spec import Admission, SecretPart, Spec, decode_spec
from mcpwrap.core.webhook import Webhook, decode
from mcpwrap.errors import UsageError
from mcpwrap.plan import paths
from mcpwrap.plan.observed import Observed
from tests.unit.plan.configs import GIT, SECRET, STATE
from tests.unit.plan.machine import wanted

FULL = """
[mcp_servers.git]
command = "/usr/bin/git-mcp"
args = ["--é", ""]
cwd = "/srv"
env = { A = "1", B = "", C = "x-${KEY}" }
inherits = ["TZ"]
[mcp_servers.git.mcpwrap]
state = true
allow_degraded = true
agents = ["alice"]
secret_files = ["KEY"]
idle_exit = "90s"
limits = { memory = "16M", tasks = 5, cpu = "150%", sessions = 2 }
"""


def test_a_wrapper_is_told_all_that_it_runs() -> None:
    text = wanted(FULL, Observed()).server_files["git"][paths.spec("git")]
    assert decode_spec(text.encode()) == Spec(
        name="git",
        command="/usr/bin/git-mcp",
        args=("--é", ""),
        cwd="/srv",
        egress_env={},
        env={"A": ("1",), "B": (), "C": ("x-", SecretPart("KEY"))},
        inherits=("TZ",),
        secrets=("KEY",),
        secret_files=("KEY",),
        idle_exit_s=90,
        cpu_percent=150,
        state=True,
        allow_degraded=True,
        sessions=2,
        memory_bytes=16 * 1024**2,
        tasks=5,
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
    want = wanted(f"{GIT}inherits = ['TZ']\n[mcp_servers.git.mcpwrap]\n{ours}", Observed())
    admission = Admission(uids=uids, gids=gids, inherits=("TZ",))
    assert want.admissions.by_server == {"git": admission}


@pytest.mark.parametrize(
    ("agents", "fragment"),
    [
        ("['carol']", "has no account 'carol'"),
        ("['@dev']", "has no group 'dev'"),
        ("['mcpwrap']", "has no account 'mcpwrap'"),  # a group needs its @
        ("['@alice']", "has no group 'alice'"),
        ("['alice', 'bob']", "more than one account would share"),
        ("['@mcpwrap']", "more than one account would share"),  # nobody knows who joins it
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


def test_a_server_that_was_to_be_refused_is_a_bug_here() -> None:
    with pytest.raises(TypeError, match=r"unsupported\.refuse"):
        wanted("[mcp_servers.git]\nurl = 'https://x.example/'\n", Observed())


@pytest.mark.parametrize("same_uid", [False, True])
def test_the_gate_is_told_whether_a_proof_is_needed(same_uid: bool) -> None:  # noqa: FBT001
    text = f"[approvals]\nsame_uid = {str(same_uid).lower()}\n{GIT}"
    assert wanted(text, Observed()).admissions.same_uid_approves is same_uid


def test_the_webhook_is_told_where_to_post() -> None:
    assert not wanted(GIT, Observed()).webhook
    text = wanted(f"[approvals]\nwebhook = 'https://a.example/b?c'\n{GIT}", Observed()).webhook
    assert decode(text.encode()) == Webhook(url="https://a.example/b?c")
