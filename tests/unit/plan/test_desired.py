"""What the configuration comes to: files, links, accounts, and who is admitted."""

import pytest

from mcpwrap.core.spec import Admission, Spec, decode_spec
from mcpwrap.errors import UsageError
from mcpwrap.plan import paths
from mcpwrap.plan.diff import Observed
from tests.unit.plan.configs import GIT, STATE
from tests.unit.plan.machine import wanted

FULL = """
[mcp_servers.git]
command = "/usr/bin/git-mcp"
args = ["--é", ""]
cwd = "/srv"
env = { A = "1", B = "" }
inherits = ["TZ"]
[mcp_servers.git.mcpwrap]
state = true
allow_degraded = true
agents = ["alice"]
limits = { memory = "16M", tasks = 5, sessions = 2 }
"""


def test_a_wrapper_is_told_all_that_it_runs() -> None:
    text = wanted(FULL, Observed()).server_files["git"][paths.spec("git")]
    assert decode_spec(text.encode()) == Spec(
        name="git",
        command="/usr/bin/git-mcp",
        args=("--é", ""),
        cwd="/srv",
        env={"A": "1", "B": ""},
        inherits=("TZ",),
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


def test_a_server_that_was_to_be_refused_is_a_bug_here() -> None:
    with pytest.raises(TypeError, match=r"unsupported\.refuse"):
        wanted("[mcp_servers.git]\nurl = 'https://x.example/'\n", Observed())
