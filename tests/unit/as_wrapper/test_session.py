"""Command and environment of a session."""

import json
import os
import stat
from pathlib import Path

import msgspec
import pytest

from mcpwrap.as_wrapper.session import SessionRequest, WrapperContext, _program
from mcpwrap.core.wire import session_socket
from mcpwrap.core.wire.oauth_session_file import OAuthSessionFile, read_oauth_session_file
from mcpwrap.core.wire.server_files import OAuth, RemoteSpec, SecretPart, ServerSpec
from mcpwrap.linux.unix_socket import fd_passing

PROXY = {"HTTPS_PROXY": "http://127.77.0.1:3128"}
SPEC = ServerSpec(
    name="far",
    command="/usr/libexec/mcpwrap/mcpwrap-remote",
    args=(),
    cwd="",
    egress_env=PROXY,
    env={},
    inherits=(),
    secrets=("KEY",),
    secret_files=(),
    state=False,
    allow_degraded=False,
    idle_exit_s=0,
    sessions=1,
    memory_bytes=0,
    tasks=0,
    cpu_percent=0,
    remote=RemoteSpec(
        url="https://mcp.example/mcp", headers={"Authorization": ("Bearer ", SecretPart("KEY"))}
    ),
)


WITH_LOGIN = msgspec.structs.replace(
    SPEC,
    secrets=("MCPWRAP_OAUTH_KEY",),
    remote=RemoteSpec(url="https://mcp.example/mcp", headers={}, oauth=OAuth(scopes=("a",))),
)


def test_the_remote_program_gets_the_path_of_its_login(tmp_path: Path) -> None:
    context = WrapperContext(
        spec=WITH_LOGIN,
        account="mcpw-far",
        gate_uid=1,
        runtime=tmp_path,
        state=None,
        tree=tmp_path,
        limits=None,
        view=None,
        logins=Path("/var/lib/mcpwrap/state/far"),
    )
    program = _program(context, tmp_path, {"MCPWRAP_LOGIN": "login"}, {"MCPWRAP_OAUTH_KEY": "k3y"})
    assert program.env["MCPWRAP_LOGIN"] == "login"
    assert program.env["HOME"] == str(tmp_path / "home")  # not persistent
    assert "k3y" not in str(program.env)
    path = Path(program.env["MCPWRAP_OAUTH"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert read_oauth_session_file(path.read_bytes()) == OAuthSessionFile(
        name="far", key="k3y", store="/var/lib/mcpwrap/state/far/oauth.sealed", scopes=("a",)
    )


@pytest.mark.parametrize(("spec", "is_allowed"), [(SPEC, False), (WITH_LOGIN, True)])
def test_a_person_logs_in_only_where_there_is_a_login(
    *, spec: ServerSpec, is_allowed: bool
) -> None:
    to_read, to_write, to_say = os.pipe(), os.pipe(), os.pipe()
    fds = [to_read[0], to_write[1], to_say[1]]
    opening = SessionRequest(agent_uid="0", inherited={"MCPWRAP_LOGIN": "login"}, fds=fds)
    try:
        opening.expect_sound(spec)
    except session_socket.ProtocolError:
        assert not is_allowed
    else:
        assert is_allowed
    finally:
        fd_passing.close_all([*to_read, *to_write, *to_say])


INHERITS = msgspec.structs.replace(
    SPEC, egress_env={"XDG_CACHE_HOME": "/ours"}, inherits=("TZ",), inherits_any=("XDG_CACHE_HOME",)
)


@pytest.mark.parametrize(
    ("inherited", "is_sound"),
    [
        ({}, True),
        ({"TZ": "UTC", "XDG_CACHE_HOME": "/home/alice"}, True),
        ({"TZ": "/home/alice/zone"}, False),
        ({"LANG": "C"}, False),  # a known variable, but not listed
    ],
)
def test_a_variable_is_inherited_with_a_value_of_its_kind(
    *, inherited: dict[str, str], is_sound: bool
) -> None:
    to_read, to_write, to_say = os.pipe(), os.pipe(), os.pipe()
    opening = SessionRequest(
        agent_uid="1000", inherited=inherited, fds=[to_read[0], to_write[1], to_say[1]]
    )
    try:
        opening.expect_sound(INHERITS)
    except session_socket.ProtocolError:
        assert not is_sound
    else:
        assert is_sound
    finally:
        fd_passing.close_all([*to_read, *to_write, *to_say])


def test_an_agent_cannot_replace_egress_variables(
    tmp_path: Path,
) -> None:
    context = WrapperContext(
        spec=msgspec.structs.replace(INHERITS, remote=None),
        account="mcpw-far",
        gate_uid=1,
        runtime=tmp_path,
        state=None,
        tree=tmp_path,
        limits=None,
        view=None,
    )
    program = _program(context, tmp_path, {"XDG_CACHE_HOME": "/home/alice", "TZ": "UTC"}, {})
    assert (program.env["XDG_CACHE_HOME"], program.env["TZ"]) == ("/ours", "UTC")


def test_the_remote_program_gets_url_and_headers(tmp_path: Path) -> None:
    context = WrapperContext(
        spec=SPEC,
        account="mcpw-far",
        gate_uid=1,
        runtime=tmp_path,
        state=None,
        tree=tmp_path,
        limits=None,
        view=None,
    )
    program = _program(context, tmp_path, {}, {"KEY": "s3cret"})
    assert program.command == "/usr/libexec/mcpwrap/mcpwrap-remote"
    assert program.env["MCPWRAP_REMOTE"] == "https://mcp.example/mcp"
    assert program.env["HTTPS_PROXY"] == PROXY["HTTPS_PROXY"]
    assert "s3cret" not in str(program.env)  # other processes of the account could read it in /proc
    headers = json.loads(Path(program.env["MCPWRAP_HEADERS"]).read_bytes())
    assert headers == {"Authorization": "Bearer s3cret"}


HERE = msgspec.structs.replace(SPEC, remote=None)


@pytest.mark.parametrize(
    ("spec", "agents", "mask"),
    [
        (HERE, "0022", 0o022),
        (HERE, "", 0o077),  # over HTTP, or where the kernel does not report it
        (msgspec.structs.replace(HERE, umask=0o027), "0002", 0o027),
        (msgspec.structs.replace(HERE, umask=0), "", 0),
        (SPEC, "0022", 0o077),  # the remote program, which stores logins
    ],
)
def test_a_server_has_the_umask_that_root_wrote_or_its_agents(
    spec: ServerSpec, agents: str, mask: int
) -> None:
    opening = SessionRequest(agent_uid="1000", inherited={}, fds=[], umask=agents)
    assert opening.umask_for(spec) == mask


@pytest.mark.parametrize("untrusted", ["0700", "22", "0022 "])
def test_a_umask_that_the_gate_would_not_send_is_refused(untrusted: str) -> None:
    with pytest.raises(ValueError, match="umask"):
        SessionRequest(agent_uid="1000", inherited={}, fds=[], umask=untrusted).expect_sound(HERE)


@pytest.mark.parametrize(
    ("of_hub", "problem"),
    [("tools", "0 descriptors"), ("", "0 descriptors"), ("../x", "name of a hub")],
)
def test_the_name_of_a_hub_is_safe_as_that_of_a_group(of_hub: str, problem: str) -> None:
    """The next check is that of the descriptors."""
    with pytest.raises(session_socket.ProtocolError, match=problem):
        SessionRequest(agent_uid="1000", inherited={}, fds=[], of_hub=of_hub).expect_sound(HERE)
