"""Workspaces in the plan: the parts of root and of a wrapper."""

import msgspec
import pytest

from mcpwrap.core.wire.server_files import Folder, Workspaces, decode_spec
from mcpwrap.errors import UsageError
from mcpwrap.plan import paths, steps
from mcpwrap.plan.observed import Observed
from tests.unit.plan.configs import GIT
from tests.unit.plan.machine import applied, plan, wanted

OURS = f"{GIT}[mcp_servers.git.mcpwrap]\nagents = ['alice']\n"
WORKSPACE = f"{OURS}workspace = ['/home/alice/b:rw', '/home/alice/a:ro']\n"
LINES = """\
# Root mounts the workspaces in the wrapper's mount namespace; the outcome is here.
TemporaryFileSystem=/run/mcpwrap/ws:mode=0755,size=64k,nr_inodes=16
ExecStartPost=+/usr/bin/nsenter --target=1 --mount -- /usr/libexec/mcpwrap/mcpwrap-ws git $MAINPID
"""


def described(text: str) -> Workspaces | None:
    want = wanted(text, Observed())
    spec = decode_spec(want.server_files["git"][paths.spec("git")].encode())
    assert want.workspaces.get("git") == spec.workspaces
    return spec.workspaces


FOLDERS = (
    Folder("/home/alice/b", is_writable=True),
    Folder("/home/alice/a", is_writable=False),
)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", Workspaces(folders=FOLDERS, protect=True, uids=(1000,), gids=())),
        ("protect = false\n", Workspaces(folders=FOLDERS, protect=False, uids=(1000,), gids=())),
        (
            "protect_instructions = false\n",
            Workspaces(
                folders=FOLDERS, protect=True, protect_instructions=False, uids=(1000,), gids=()
            ),
        ),
    ],
)
def test_a_wrapper_is_told_its_folders_and_whose_they_may_be(
    more: str, expected: Workspaces
) -> None:
    assert described(WORKSPACE + more) == expected


def test_they_may_belong_to_any_agent() -> None:
    text = WORKSPACE.replace("['alice']", "['alice', 'bob', '@mcpwrap']\nshared = true")
    told = described(text)
    assert told is not None
    assert (told.uids, told.gids) == ((1000, 1001), (990,))


@pytest.mark.parametrize("text", [OURS, f"{OURS}protect = false\n", f"{OURS}workspace = []\n"])
def test_a_server_without_a_workspace_is_told_nothing_and_waits_for_nobody(text: str) -> None:
    assert described(text) is None
    drop_in = wanted(text, Observed()).server_files["git"][paths.drop_in("git")]
    assert paths.WORKSPACE_PROGRAM not in drop_in


def test_root_shows_them_at_each_start() -> None:
    drop_in = wanted(WORKSPACE, Observed()).server_files["git"][paths.drop_in("git")]
    assert LINES in drop_in
    assert "/home" not in drop_in  # a path with a % or a space is never parsed by systemd


@pytest.mark.parametrize("agents", ["['alice', 'bob']", "['@mcpwrap']"])
def test_an_agent_s_folder_is_shared_only_on_purpose(agents: str) -> None:
    text = WORKSPACE.replace("['alice']", agents)
    with pytest.raises(UsageError, match="would share this server's workspace;"):
        wanted(text, Observed())
    assert described(f"{text}shared = true\n")


@pytest.mark.parametrize(
    "text",
    [
        OURS,
        WORKSPACE.replace("b:rw", "b:ro"),
        WORKSPACE.replace("/home/alice/a", "/home/alice/c"),
        f"{WORKSPACE}protect = false\n",
        f"{WORKSPACE}protect_instructions = false\n",
    ],
)
def test_a_server_with_other_folders_is_restarted(text: str) -> None:
    machine = applied(WORKSPACE)
    assert steps.RestartServers(("git",)) in plan(text, machine.seen_by_root())
    assert plan(WORKSPACE, machine.seen_by_root()) == []


def test_instructions_are_held_where_an_earlier_version_told_the_wrapper() -> None:
    told = b'{"folders":[],"protect":false,"uids":[],"gids":[]}'
    assert msgspec.json.decode(told, type=Workspaces).protect_instructions


PROJECTS = f"{OURS}projects = ['/home/alice/src:rw']\n"


def test_a_wrapper_is_told_where_projects_are_and_its_unit_lets_sessions_show_one() -> None:
    told = described(PROJECTS)
    assert told is not None
    assert (told.folders, told.projects) == ((), (Folder("/home/alice/src", is_writable=True),))
    want = wanted(PROJECTS, Observed())
    drop_in = want.server_files["git"][paths.drop_in("git")]
    assert LINES in drop_in
    assert "RestrictNamespaces=\nRestrictNamespaces=user mnt\n" in drop_in
    assert "SystemCallFilter=unshare mount open_tree move_mount mount_setattr\n" in drop_in
    plain = wanted(WORKSPACE, Observed()).server_files["git"][paths.drop_in("git")]
    assert "RestrictNamespaces" not in plain  # the twin
    rule = want.admissions.by_server["git"]
    assert (rule.projects, rule.takes_folder()) == (("/home/alice/src",), True)


def test_projects_are_shared_only_on_purpose() -> None:
    text = PROJECTS.replace("['alice']", "['alice', 'bob']")
    with pytest.raises(UsageError, match="would share this server's projects;"):
        wanted(text, Observed())
    assert described(f"{text}shared = true\n")
