"""Paths of a server's files: unique, whatever its name."""

import pytest

from mcpwrap.as_gate.state import access_list, emergency_stop
from mcpwrap.plan import paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (paths.spec("git"), "/var/lib/mcpwrap/servers/git.json"),
        (paths.sysusers("git"), "/var/lib/mcpwrap/sysusers/git.conf"),
        (paths.drop_in("git"), "/etc/systemd/system/mcpwrap@git.service.d/10-mcpwrap.conf"),
        (paths.link("git"), "/var/lib/mcpwrap/bin/mcp-wrapper-git"),
        (paths.socket_unit("git"), "mcpwrap@git.socket"),
        (paths.service_unit("git"), "mcpwrap@git.service"),
        (paths.listener("git.1000"), "/var/lib/mcpwrap/http/git.1000.json"),
        (
            paths.listener_drop_in("git.1000"),
            "/etc/systemd/system/mcpwrap-http@git.1000.socket.d/10-mcpwrap.conf",
        ),
        (paths.listener_socket("git.1000"), "mcpwrap-http@git.1000.socket"),
        (paths.listener_service("git.1000"), "mcpwrap-http@git.1000.service"),
        (paths.sealed("git", "TOKEN"), "/var/lib/mcpwrap/sealed/git/TOKEN.sealed"),
        (paths.capability("git"), "/run/mcpwrap/mint/git"),
        (paths.bundle("git"), "/run/mcpwrap/bundle/git/bundle"),
        (paths.proxy("proxy-1"), "/var/lib/mcpwrap/squid/proxy-1.conf"),
        (paths.proxy_unit("proxy-1"), "mcpwrap-squid-proxy@1.service"),
        (paths.access_log("proxy-1"), "/var/log/mcpwrap/proxy/access-1.jsonl"),
        (paths.ca_certificate("git"), "/var/lib/mcpwrap/ca/git/ca.pem"),
        (paths.ca_key("git"), "/var/lib/mcpwrap/ca/git/key.pem"),
        (paths.ca_bundle("git"), "/var/lib/mcpwrap/ca/git/bundle.pem"),
        (paths.resolv_conf("git"), "/var/lib/mcpwrap/resolv/git.conf"),
    ],
)
def test_where_it_is(path: str, expected: str) -> None:
    assert path == expected


def test_what_runs_before_a_wrapper_has_its_name() -> None:
    helpers = ("mcpwrap-check@git.service", "mcpwrap-mint@git.service")
    assert paths.helper_units("git") == helpers


@pytest.mark.parametrize(
    ("path", "lock"),
    [
        ("/var/lib/mcpwrap/.gate.json.new", ""),  # that of `apply` itself
        ("/var/lib/mcpwrap/servers/.git.json.new", ""),
        ("/var/lib/mcpwrap/servers/.store.json.new", ""),  # a server of that name
        ("/var/lib/mcpwrap/.store.json.new", paths.SECRETS_LOCK),
        ("/var/lib/mcpwrap/.secrets.json.new", paths.SECRETS_LOCK),
        ("/var/lib/mcpwrap/sealed/git/.TOKEN.sealed.new", paths.SECRETS_LOCK),
        ("/var/lib/mcpwrap/.panic.json.new", paths.PANIC_LOCK),
        ("/var/lib/mcpwrap/.approvers.json.new", paths.APPROVERS_LOCK),
        ("/var/lib/mcpwrap/.audit.json.new", paths.AUDIT_LOCK),
    ],
)
def test_under_which_lock_a_file_is_written(path: str, lock: str) -> None:
    assert paths.lock_of_temporary(path) == lock


def test_what_the_gate_refuses_is_what_root_is_told_of() -> None:
    assert {*map(str, emergency_stop.PANIC)} <= {*paths.OTHER_FILES}
    assert str(access_list.PATH) == paths.ACCESS_LIST
    assert str(emergency_stop.SERVERS) == paths.SPECS
