"""Steps from the observed to the desired state, and none left after them."""

from dataclasses import replace

import msgspec
import pytest

from mcpwrap.core.wire.server_files import AccessList, decode_spec
from mcpwrap.plan import paths, steps
from mcpwrap.plan.diff.diff import diff
from mcpwrap.plan.observed import Observed
from tests.unit.plan.configs import (
    APPROVALS,
    CACHE,
    CHANGED,
    DIRECT,
    EGRESS,
    GIT,
    GIT_AND_TIME,
    HTTP,
    INTERCEPT,
    LESS_EGRESS,
    NOTHING,
    ONE_OPENED,
    OTHER_OPENED,
    PARENT,
    PYTHON,
    SECRET,
    STATE,
    URL,
    from_each,
    to_each,
)
from tests.unit.plan.machine import (
    IDS,
    SQUIDS,
    Machine,
    after,
    applied,
    plan,
    plan_with_purge,
    stages,
    wanted,
)

GIT_UID = 21_770
GIT_OF_ALICE = HTTP.replace("expose = 'http'", "")


def described(todo: list[steps.Step]) -> list[str]:
    return [step.describe() for step in todo]


def test_a_new_machine_is_made_in_an_order_that_is_safe() -> None:
    assert described(plan(GIT, Observed())) == [
        "write /var/lib/mcpwrap/registry.json",
        "write /var/lib/mcpwrap/wrapped.nft",
        "load the packet rules: 1 servers, 0 of them with an allowlist",
        "write /var/lib/mcpwrap/sysusers/git.conf",
        f"make the account mcpw-git with UID {GIT_UID}",
        "write /var/lib/mcpwrap/servers/git.json",
        "write /etc/systemd/system/mcpwrap@git.service.d/10-mcpwrap.conf",
        "link /var/lib/mcpwrap/bin/mcp-wrapper-git to /usr/bin/mcpwrap-connect",
        "listen after a reboot for sessions of git",
        "make systemd read the unit files again",
        "listen for sessions of git",
        "write /var/lib/mcpwrap/gate.json",
        "write /var/lib/mcpwrap/applied.json",
    ]


def test_a_server_is_removed_in_an_order_that_is_safe() -> None:
    assert described(plan(NOTHING, applied(GIT).seen_by_root())) == [
        "write /var/lib/mcpwrap/registry.json",
        "write /var/lib/mcpwrap/gate.json",
        "write /var/lib/mcpwrap/applied.json",  # without git: it is not in effect any more
        "stop git; its sessions end",
        "remove /var/lib/mcpwrap/servers/git.json",
        "remove /etc/systemd/system/mcpwrap@git.service.d/10-mcpwrap.conf",
        "remove /var/lib/mcpwrap/bin/mcp-wrapper-git",
        "make systemd read the unit files again",
        "write /var/lib/mcpwrap/gate.json",  # the same text again: harmless, and shorter to plan
        "remove the account mcpw-git",
        "remove /var/lib/mcpwrap/sysusers/git.conf",
        "write /var/lib/mcpwrap/wrapped.nft",
        "load the packet rules: 0 servers, 0 of them with an allowlist",
        "write /var/lib/mcpwrap/applied.json",
    ]


def test_a_changed_server_is_restarted_and_no_other() -> None:
    todo = plan(CHANGED, applied(GIT_AND_TIME).seen_by_root())
    assert described(todo) == [
        "write /var/lib/mcpwrap/applied.json",  # so that a run interrupted here restarts git too
        "write /var/lib/mcpwrap/servers/git.json",
        "restart git if it runs; its sessions end",
        "write /var/lib/mcpwrap/applied.json",
    ]


def many(count: int, *, args: str = "") -> str:
    return "".join(f"[mcp_servers.s{n}]\ncommand = '/bin/x'\n{args}" for n in range(count))


def commands(todo: list[steps.Step]) -> list[type[steps.Step]]:
    """Return the kinds of steps for which root runs a tool of the system."""
    files = steps.WriteFile | steps.RemoveFile | steps.MakeLink
    return [type(step) for step in todo if not isinstance(step, files)]


def test_more_servers_take_no_more_commands() -> None:
    one, more, over = (commands(plan(many(n), Observed())) for n in (1, 50, 51))
    assert more == one
    assert over == [*one, steps.StartSockets]  # so that the progress is visible
    changed = plan(many(9, args="args = ['new']\n"), applied(many(9)).seen_by_root())
    assert commands(changed) == [steps.RestartServers] * 2  # eight start at the same time
    gone = commands(plan(NOTHING, applied(many(50)).seen_by_root()))
    assert gone.count(steps.StopServers) == 1


def test_a_socket_that_was_stopped_or_disabled_listens_again() -> None:
    complete = applied(GIT_AND_TIME)
    for spoiled in (complete.listening, complete.enabled):
        spoiled.remove("git")
        todo = plan(GIT_AND_TIME, complete.seen_by_root())
        assert described(todo) == [
            "listen after a reboot for sessions of git",
            "make systemd read the unit files again",
            "listen for sessions of git",
        ]
        spoiled.add("git")


def test_a_state_is_kept_until_it_is_purged() -> None:
    gone = applied(STATE, NOTHING)
    assert gone.uid_by_state == {"git": 0}  # root's alone, though git's UID goes to a person
    assert described(plan_with_purge(NOTHING, gone.seen_by_root())) == [
        "remove /var/lib/mcpwrap/state/git and its content",
        "write /var/lib/mcpwrap/registry.json",  # the UID is free only when nothing is left of it
    ]


def test_a_purge_takes_no_state_of_a_server_that_is_there() -> None:
    assert plan_with_purge(STATE, applied(STATE).seen_by_root()) == []


def with_secrets(machine: Machine, *names: str) -> Machine:
    machine.kept_secrets |= {*names}
    return machine


def test_a_secret_is_kept_until_it_is_purged() -> None:
    machine = with_secrets(applied(SECRET), "git")
    gone = after(machine, plan(NOTHING, machine.seen_by_root()))
    assert gone.kept_secrets == {"git"}
    assert plan(NOTHING, gone.seen_by_root()) == []
    todo = plan_with_purge(NOTHING, gone.seen_by_root())
    assert described(todo) == [
        "forget the secrets of git",
        "write /var/lib/mcpwrap/registry.json",  # no other server called git gets its secrets
    ]
    assert plan_with_purge(NOTHING, after(gone, todo).seen_by_root()) == []


@pytest.mark.parametrize(
    ("before", "text", "kept", "forgotten"),
    [
        (SECRET, SECRET, {"git"}, []),
        (SECRET, GIT, {"git"}, []),  # declares it no longer, and is there
        (SECRET, SECRET, {"time"}, []),  # set before the server is configured
        (NOTHING, NOTHING, {"time"}, []),
        (SECRET, NOTHING, {"git", "time"}, ["git"]),
        (GIT_AND_TIME, GIT, {"git", "time"}, ["time"]),
        (GIT_AND_TIME, NOTHING, {"time", "git"}, ["git", "time"]),
        (SECRET, NOTHING, set(), []),
    ],
)
def test_a_purge_forgets_the_secrets_of_servers_that_are_gone_and_no_others(
    before: str, text: str, kept: set[str], forgotten: list[str]
) -> None:
    machine = with_secrets(applied(before), *kept)
    todo = plan_with_purge(text, machine.seen_by_root())
    steps_of_it = [step for step in todo if isinstance(step, steps.ForgetSecrets)]
    assert steps_of_it == [steps.ForgetSecrets(name) for name in forgotten]
    done = after(machine, todo)
    assert done.kept_secrets == kept - {*forgotten}
    assert plan_with_purge(text, done.seen_by_root()) == []


def test_a_purge_that_is_broken_off_forgets_the_secrets_the_next_time() -> None:
    machine = with_secrets(applied(GIT_AND_TIME), "git", "time")
    complete = after(machine, plan_with_purge(GIT, machine.seen_by_root()))
    for left in stages(machine, plan_with_purge(GIT, machine.seen_by_root())):
        assert after(left, plan_with_purge(GIT, left.seen_by_root())) == complete


@pytest.mark.parametrize(
    ("before", "text"), [(GIT, SECRET), (SECRET, GIT), (SECRET, SECRET.replace("TOKEN", "KEY"))]
)
def test_a_server_that_refers_to_another_secret_is_restarted(before: str, text: str) -> None:
    assert steps.RestartServers(("git",)) in plan(text, applied(before).seen_by_root())


CLOSE = "close the listener git.1000; its sessions end"
OPEN = "listen at http://127.78.0.1:52100/ for git, UID 1000 alone"
OPEN_OTHER = "listen at http://127.78.0.2:52100/ for git, UID 1001 alone"
LISTENER = "/var/lib/mcpwrap/http/git.{}.json"
DROP_IN = "/etc/systemd/system/mcpwrap-http@git.{}.socket.d/10-mcpwrap.conf"


def test_an_agent_is_heard_when_all_else_stands() -> None:
    assert described(plan(HTTP, applied(GIT_OF_ALICE).seen_by_root())) == [
        "write /var/lib/mcpwrap/registry.json",
        "write /var/lib/mcpwrap/wrapped.nft",
        "load the packet rules: 1 servers, 0 of them with an allowlist; 1 agents by HTTP",
        f"write {LISTENER.format(1000)}",
        f"write {DROP_IN.format(1000)}",
        "make systemd read the unit files again",
        "write /var/lib/mcpwrap/gate.json",
        OPEN,
        "write /var/lib/mcpwrap/applied.json",
    ]  # the server keeps running, and so do its open sessions


def test_an_agent_that_is_heard_no_more_is_shut_out_before_its_rule_goes() -> None:
    assert described(plan(GIT_OF_ALICE, applied(HTTP).seen_by_root())) == [
        "write /var/lib/mcpwrap/gate.json",
        CLOSE,
        "write /var/lib/mcpwrap/wrapped.nft",
        "load the packet rules: 1 servers, 0 of them with an allowlist",
        f"remove {LISTENER.format(1000)}",
        f"remove {DROP_IN.format(1000)}",
        "make systemd read the unit files again",
        "write /var/lib/mcpwrap/gate.json",
        "write /var/lib/mcpwrap/applied.json",
    ]


@pytest.mark.parametrize(
    ("joined", "closed", "opened"),
    [
        ({1000}, [], []),
        ({0, 1000}, [], []),
        ({1000, 1001}, [], [OPEN_OTHER]),
        ({1001}, [CLOSE], [OPEN_OTHER]),
        ({}, [CLOSE], []),
    ],
)
def test_who_joins_and_leaves_a_group_ends_no_session_of_others(
    joined: set[int], closed: list[str], opened: list[str]
) -> None:
    text = HTTP.replace("'alice'", "'@mcpwrap'")
    then, now = (replace(IDS, uids_by_group={"mcpwrap": frozenset(g)}) for g in ({1000}, joined))
    machine = after(Machine(), diff(wanted(text, Observed(), then), Observed()))
    machine.let_agents_come()
    have = machine.seen_by_root()
    todo = diff(wanted(text, have, now), have)
    units = steps.StopListeners | steps.StartListeners | steps.RestartServers | steps.StopServers
    found = [step.describe() for step in todo if isinstance(step, units)]
    assert found == closed + opened
    for left in stages(machine, todo):
        assert left.admissions().by_server["git"].gids == (990,)


def test_a_listener_is_told_that_its_server_is_a_url_now() -> None:
    todo = described(plan(URL, applied(HTTP).seen_by_root()))
    assert [step for step in todo if step in {CLOSE, OPEN, RESTART}] == [CLOSE, RESTART, OPEN]


def test_nobody_else_is_shut_out_when_an_agent_by_http_comes_or_leaves() -> None:
    for before, text in ((HTTP, GIT_OF_ALICE), (GIT_OF_ALICE, HTTP)):
        machine = applied(before)
        for left in stages(machine, plan(text, machine.seen_by_root())):
            assert left.admissions().by_server["git"].uids == (1000,)


def test_nobody_is_shut_out_when_a_policy_comes_or_goes() -> None:
    machine = applied(HTTP)
    have = machine.seen_by_root()
    want = wanted(HTTP, have)
    one = msgspec.structs.replace(want.admissions.by_server["git"], policy=("/etc/policy.yaml",))
    todo = diff(replace(want, admissions=AccessList(by_server={"git": one})), have)
    assert described(todo) == [f"write {paths.ACCESS_LIST}"]
    for left in stages(machine, todo):
        assert left.admissions().by_server["git"].uids == (1000,)


def test_no_server_executes_code_before_the_gate_audits_code() -> None:
    machine = applied(PYTHON.replace("python =", "command ="))
    todo = plan(PYTHON, machine.seen_by_root())
    for left in stages(machine, todo):
        rule = left.admissions().by_server.get("py")
        runs = decode_spec(left.files[paths.spec("py")].encode()).python
        assert runs is None or rule is None or rule.executes
    assert after(machine, todo).admissions().by_server["py"].executes


@pytest.mark.parametrize("path", [LISTENER.format(1000), DROP_IN.format(1000)])
def test_a_listener_of_which_somebody_changed_a_file_is_closed_until_it_is_right(path: str) -> None:
    machine, complete = applied(HTTP), applied(HTTP)
    machine.files[path] = ""
    machine.open_listeners.clear()  # it would not have written there
    machine.open_listeners["git.1000"] = ()
    todo = plan(HTTP, machine.seen_by_root())
    assert [todo[0].describe(), todo[-1].describe()] == [CLOSE, OPEN]
    assert after(machine, todo) == complete


def test_a_listener_that_was_closed_is_opened_again() -> None:
    machine, complete = applied(HTTP), applied(HTTP)
    machine.open_listeners.clear()
    todo = plan(HTTP, machine.seen_by_root())
    assert described(todo) == [OPEN]
    assert after(machine, todo) == complete


def way_out(todo: list[steps.Step]) -> list[str]:
    """Return the steps about Squid, the front and what they need, and those of servers."""
    others = steps.WriteFile | steps.ReloadUnits
    return [step.describe() for step in todo if not isinstance(step, others)]


RULES = "load the packet rules: 1 servers, 1 of them with an allowlist"
NO_ALLOWLIST = "load the packet rules: 1 servers, 0 of them with an allowlist"
LOAD_SPLICE = "load /var/lib/mcpwrap/squid/proxy-1.conf into Squid; connections stay"
LOAD_INTERCEPT = "load /var/lib/mcpwrap/squid/intercept-1.conf into Squid; connections stay"
LOAD_FRONT = "make the front serve the servers without proxy support; connections stay"
RESTART = "restart git if it runs; its sessions end"
STOP_SPLICE = "stop mcpwrap-squid-proxy@1.service; its connections end"
STOP_INTERCEPT = "stop mcpwrap-squid-intercept@1.service; its connections end"
STOP_FRONT = "stop mcpwrap-front.service; its connections end"


@pytest.mark.parametrize(
    ("before", "text", "expected"),
    [
        (GIT, EGRESS, [
            RULES,
            "make a certificate for Squid's ports, which no client is shown",
            LOAD_SPLICE,
            LOAD_FRONT,
            RESTART,
        ]),
        (EGRESS, LESS_EGRESS, [RULES, LOAD_SPLICE]),  # no session ends
        (EGRESS, GIT, [
            NO_ALLOWLIST,
            STOP_SPLICE,
            "remove /var/lib/mcpwrap/squid/proxy-1.conf",
            STOP_FRONT,
            "remove /var/lib/mcpwrap/front.json",
            RESTART,
            "remove /var/lib/mcpwrap/resolv/git.conf",  # after the unit that named it
            "remove /var/lib/mcpwrap/ca/_none and its content",
        ]),
        (EGRESS, INTERCEPT, [
            "make a certificate authority that git alone trusts",
            STOP_SPLICE,
            "remove /var/lib/mcpwrap/squid/proxy-1.conf",
            LOAD_INTERCEPT,
            RESTART,
            "remove /var/lib/mcpwrap/ca/_none and its content",
        ]),
        (INTERCEPT, EGRESS, [  # the same port: one releases it before the other opens it
            "make a certificate for Squid's ports, which no client is shown",
            STOP_INTERCEPT,
            "remove /var/lib/mcpwrap/squid/intercept-1.conf",
            LOAD_SPLICE,
            RESTART,
            "remove /var/lib/mcpwrap/ca/git and its content",
        ]),
        (EGRESS, ONE_OPENED, [
            "load the packet rules: 2 servers, 2 of them with an allowlist",
            "make the account mcpw-time with UID 34142",
            "make a certificate authority that git alone trusts",
            LOAD_SPLICE,
            LOAD_INTERCEPT,
            LOAD_FRONT,
            "link /var/lib/mcpwrap/bin/mcp-wrapper-time to /usr/bin/mcpwrap-connect",
            "listen after a reboot for sessions of time",
            RESTART,
            "listen for sessions of time",
        ]),
        (ONE_OPENED, OTHER_OPENED, [  # each needs a port of the other: one is stopped
            "make a certificate authority that time alone trusts",
            STOP_INTERCEPT,
            LOAD_SPLICE,
            LOAD_INTERCEPT,
            "restart git, time if they run; their sessions end",
            "remove /var/lib/mcpwrap/ca/git and its content",
        ]),
        (EGRESS, CACHE, [
            RULES,
            LOAD_SPLICE,
            STOP_FRONT,
            "remove /var/lib/mcpwrap/front.json",
            RESTART,
            "remove /var/lib/mcpwrap/resolv/git.conf",
        ]),
        (EGRESS, PARENT, [RULES, LOAD_SPLICE]),
        (GIT, DIRECT, [
            f"{NO_ALLOWLIST}; DIRECT, not through Squid: {GIT_UID} . 10.0.0.5 . 5432",
            RESTART,
        ]),
    ],
)  # fmt: skip
def test_what_a_server_reaches_changes_in_an_order_that_is_safe(
    before: str, text: str, expected: list[str]
) -> None:
    assert way_out(plan(text, applied(before).seen_by_root())) == expected


def test_a_cache_goes_before_the_account_whose_uid_somebody_may_get() -> None:
    todo = plan(NOTHING, applied(CACHE).seen_by_root())
    [cache] = [i for i, step in enumerate(todo) if isinstance(step, steps.RemoveTree)
               and step.path == "/var/cache/mcpwrap/git"]  # fmt: skip
    assert cache < todo.index(steps.RemoveAccount("mcpw-git"))


def test_a_cache_stays_as_long_as_its_server() -> None:
    assert applied(CACHE, GIT).caches == {"git"}


@pytest.mark.parametrize("unit", [*map(paths.proxy_unit, SQUIDS), paths.FRONT_UNIT])
@pytest.mark.parametrize("text", [EGRESS, ONE_OPENED])
def test_a_way_out_that_was_stopped_is_opened_again(text: str, unit: str) -> None:
    machine, complete = applied(text), applied(text)
    machine.carry_out(steps.StopUnit(unit))
    todo = plan(text, machine.seen_by_root())
    assert after(machine, todo) == complete
    assert not [step for step in todo if isinstance(step, steps.StopUnit | steps.RestartServers)]


@pytest.mark.parametrize(
    ("text", "lost", "expected"),
    [
        (EGRESS, paths.SPLICE_CA, [LOAD_SPLICE]),
        (INTERCEPT, "git", [LOAD_INTERCEPT, RESTART]),  # it trusts the old one
        (ONE_OPENED, "git", [LOAD_INTERCEPT, RESTART]),
        (ONE_OPENED, paths.SPLICE_CA, [LOAD_SPLICE]),
    ],
)
def test_a_lost_certificate_comes_back_and_all_take_the_new_one(
    text: str, lost: str, expected: list[str]
) -> None:
    machine = applied(text)
    del machine.authorities[lost]
    todo = plan(text, machine.seen_by_root())
    assert way_out(todo) == [steps.MakeAuthority(lost).describe(), *expected]
    end = applied(text)
    for left in stages(machine, todo):  # wherever it is interrupted
        end = after(left, plan(text, left.seen_by_root()))
        assert plan(text, end.seen_by_root()) == []
        assert end.running["git"] == end.current_files("git")
        for read, authorities in end.squids.values():
            assert authorities == end.authorities_in(read)


@pytest.mark.parametrize(
    ("before", "text", "expected"),
    [
        (GIT, APPROVALS, [
            "write /var/lib/mcpwrap/gate.json",
            "write /var/lib/mcpwrap/webhook.json",
            "make the webhook post pending approvals, signed with /etc/mcpwrap/webhook.key",
            "write /var/lib/mcpwrap/applied.json",
        ]),
        (APPROVALS, GIT, [
            "write /var/lib/mcpwrap/gate.json",  # first: no agent approves its own calls any more
            "write /var/lib/mcpwrap/applied.json",
            "write /var/lib/mcpwrap/gate.json",
            "stop mcpwrap-webhook.service; its connections end",
            "remove /var/lib/mcpwrap/webhook.json",
            "write /var/lib/mcpwrap/applied.json",
        ]),
        (APPROVALS, APPROVALS.replace("/a'", "/b'"), [
            "write /var/lib/mcpwrap/applied.json",
            "write /var/lib/mcpwrap/webhook.json",
            "make the webhook post pending approvals, signed with /etc/mcpwrap/webhook.key",
            "write /var/lib/mcpwrap/applied.json",
        ]),
    ],
)  # fmt: skip
def test_how_people_are_asked_changes_no_server(
    before: str, text: str, expected: list[str]
) -> None:
    assert described(plan(text, applied(before).seen_by_root())) == expected


@to_each
def test_an_agent_may_enter_and_leave_between_two_runs(text: str) -> None:
    machine = applied(text)
    machine.running.clear()
    assert plan(text, machine.seen_by_root()) == []


@from_each
@to_each
def test_when_root_is_done_nothing_is_left_to_do(before: str, text: str) -> None:
    machine = applied(before, text)
    assert plan(text, machine.seen_by_root()) == []
    assert plan(text, machine.seen_by_anybody()) == []


@from_each
@to_each
def test_anybody_sees_the_steps_that_root_sees(before: str, text: str) -> None:
    machine = applied(before)
    assert plan(text, machine.seen_by_anybody()) == plan(text, machine.seen_by_root())


def test_only_root_sees_that_the_kernel_lost_its_rules() -> None:
    machine = applied(GIT)
    machine.elements.clear()
    assert plan(GIT, machine.seen_by_anybody()) == []
    todo = plan(GIT, machine.seen_by_root())
    assert todo[1:] == [steps.LoadRules(frozenset({("wrapped", str(GIT_UID))}))]


@pytest.mark.parametrize(
    "path", [paths.ELEMENTS, paths.APPLIED, paths.REGISTRY, paths.FRONT, *map(paths.proxy, SQUIDS)]
)
@to_each
def test_a_lost_file_comes_back(text: str, path: str) -> None:
    complete = applied(text)
    machine = applied(text)
    machine.files.pop(path, None)
    assert after(machine, plan(text, machine.seen_by_root())) == complete


@pytest.mark.parametrize(
    ("path", "fragment"),
    [
        (paths.spec("git"), ["write /var/lib/mcpwrap/servers/git.json"]),
        (paths.sysusers("git"), ["write /var/lib/mcpwrap/sysusers/git.conf"]),
        (
            paths.drop_in("git"),
            [
                "write /etc/systemd/system/mcpwrap@git.service.d/10-mcpwrap.conf",
                "make systemd read the unit files again",
            ],
        ),
    ],
)
def test_a_file_that_somebody_changed_is_put_right(path: str, fragment: list[str]) -> None:
    have = applied(GIT).seen_by_root()
    assert described(plan(GIT, replace(have, files={**have.files, path: ""}))) == fragment


def test_a_guest_list_that_cannot_be_read_admits_nobody_and_is_put_right() -> None:
    complete = applied(GIT)
    have = complete.seen_by_root()
    old = '{"by_server": {"git": {"uids": [1000]}}}'  # of a version before `gids`
    todo = plan(GIT, replace(have, files={**have.files, paths.ACCESS_LIST: old}))
    assert after(complete, todo) == complete
    assert todo


def test_an_account_with_another_uid_is_refused_its_packets_as_long_as_it_is_there() -> None:
    have = Observed(uid_by_account={"mcpw-git": 25_000})
    want = wanted(GIT, Observed())  # the registry has another
    loaded = [step for step in diff(want, have) if isinstance(step, steps.LoadRules)]
    assert loaded
    assert all(
        {("wrapped", "25000"), ("wrapped", str(GIT_UID))} <= step.elements for step in loaded
    )


@pytest.mark.parametrize(
    "have",
    [
        Observed(uid_by_account={"mcpw-old": 20_005}, elements=frozenset({("wrapped", "20005")})),
        Observed(elements=frozenset({("egress_addr", "20005 . 127.77.0.5"), ("ports", "443")})),
        Observed(files={paths.resolv_conf("old"): ""}),
        Observed(caches=frozenset({"old"})),
        Observed(authorities=frozenset({"old"})),
        Observed(authorities=frozenset({paths.SPLICE_CA})),
        Observed(serving=frozenset({paths.FRONT_UNIT, paths.proxy_unit("intercept-1")})),
        Observed(serving=frozenset({paths.WEBHOOK_UNIT})),
        Observed(
            files={paths.FRONT: "", paths.proxy("proxy-1"): ""}
        ),  # stopped, and starts at boot
        Observed(files={paths.spec("old"): ""}),
        Observed(files={paths.drop_in("old"): ""}),
        Observed(files={paths.sysusers("old"): ""}),
        Observed(links={paths.link("old"): paths.STUB}),
        Observed(listening=frozenset({"old"})),
        Observed(loaded_units=frozenset({"old"})),
        Observed(files={paths.listener("old.1000"): ""}),
        Observed(files={paths.listener_drop_in("old.1000"): ""}),
        Observed(open_listeners=frozenset({"old.1000"})),
        Observed(elements=frozenset({("listener_clients", "1000 . 127.78.0.1")})),
    ],
)
def test_whatever_is_left_of_a_server_is_removed(have: Observed) -> None:
    machine = Machine(
        files=dict(have.files),
        links=dict(have.links),
        accounts=dict(have.uid_by_account),
        listening=set(have.listening),
        open_listeners=dict.fromkeys(have.open_listeners, ()),
        elements=set(have.elements or ()),
        authorities=dict.fromkeys(have.authorities, 1),
        caches=set(have.caches),
        squids={i: ("", {}) for unit in have.serving if (i := paths.instance_of(unit))},
        front="{}" if paths.FRONT_UNIT in have.serving else "",
        webhook="{}" if paths.WEBHOOK_UNIT in have.serving else "",
    )
    todo = plan(NOTHING, have)
    cleaned = after(machine, todo)
    assert (cleaned.accounts, cleaned.links, cleaned.listening) == ({}, {}, set())
    assert not [path for path in cleaned.files if "old" in path]
    assert cleaned.open_listeners == {}
    assert (cleaned.elements, cleaned.authorities, cleaned.caches) == (set(), {}, set())
    assert (cleaned.serving(), plan(NOTHING, cleaned.seen_by_root())) == (set(), [])
    if have.loaded_units | have.listening:
        assert steps.StopServers(("old",)) in todo
    if have.files.keys() & {paths.FRONT, paths.proxy("proxy-1")}:
        stopped = [step.unit for step in todo if isinstance(step, steps.StopUnit)]
        assert stopped == [paths.proxy_unit("proxy-1"), paths.FRONT_UNIT]


@pytest.mark.parametrize("path", [paths.spec("")[:-5], paths.drop_in(""), paths.sysusers("")])
def test_a_file_without_a_name_is_nobodys(path: str) -> None:
    assert steps.RemoveFile(path) not in plan(NOTHING, Observed(files={path: ""}))


def test_what_was_not_completed_goes_first() -> None:
    have = replace(applied(GIT).seen_by_root(), leftovers=frozenset({"/b/.x.new", "/a/.y.new"}))
    assert described(plan(GIT, have)) == [
        "remove /a/.y.new, which was not completed",
        "remove /b/.x.new, which was not completed",
    ]
