"""Access list and server descriptor: admission, and refusal of files of another version."""

import msgspec
import pytest

from mcpwrap.core.wire.server_files import (
    AccessList,
    AccessRule,
    SecretPart,
    ServerSpec,
    decode_access_list,
    decode_spec,
    encode,
)

SPEC = ServerSpec(
    name="git",
    command="/usr/bin/git-mcp",
    args=("--é",),
    cwd="",
    egress_env={"HTTPS_PROXY": "http://127.77.0.1:3128"},
    env={"B": ("2 ", SecretPart("KEY")), "A": ("1",), "C": ()},
    inherits=("TZ",),
    secrets=("KEY",),
    secret_files=(),
    idle_exit_s=0,
    cpu_percent=0,
    allow_degraded=False,
    state=False,
    sessions=16,
    memory_bytes=1,
    tasks=1,
)
ADMISSION = AccessRule(uids=(1000, 1001), gids=(50,), inherits=())
ADMISSIONS = AccessList(by_server={"git": ADMISSION})


@pytest.mark.parametrize(
    ("uid", "gids"),
    [(1000, {1000}), (1001, {7}), (2000, {50}), (2000, {7, 50})],
)
def test_an_agent_is_admitted(uid: int, gids: set[int]) -> None:
    assert ADMISSION.admits(uid, frozenset(gids))


@pytest.mark.parametrize(
    ("uid", "gids"),
    [
        (2000, set[int]()),
        (2000, {2000, 51}),
        (50, {7}),  # a UID is not a GID
        (7, {1000}),
        (0, {0}),  # not even root, unless it is named
    ],
)
def test_a_stranger_is_not_admitted(uid: int, gids: set[int]) -> None:
    assert not ADMISSION.admits(uid, frozenset(gids))


def test_an_empty_rule_admits_no_account() -> None:
    assert not AccessRule(uids=(), gids=(), inherits=()).admits(0, frozenset({0}))


def test_files_are_read_as_they_were_written() -> None:
    assert decode_spec(encode(SPEC).encode()) == SPEC
    assert decode_access_list(encode(ADMISSIONS)) == ADMISSIONS


def test_a_rule_of_an_earlier_version_executes_nothing() -> None:
    rule = '{"uids": [1000, 1001], "gids": [50], "inherits": []}'
    assert decode_access_list(f'{{"by_server": {{"git": {rule}}}}}') == ADMISSIONS
    assert not ADMISSION.executes
    assert ADMISSION.workspaces == ()


BACKWARDS = dict(reversed(SPEC.env.items()))


def test_equal_values_give_equal_texts() -> None:
    assert encode(SPEC) == encode(msgspec.structs.replace(SPEC, env=BACKWARDS))


NOT_ADMISSIONS = [
    b"",
    b"[]",
    b"null",
    b"\xff",
    b'{"by_server": {"\xff": 1}}',  # the byte is inside a text
    b'{"by_server": []}',
    b'{"by_server": {}, "by_group": {}}',
    b'{"by_server": {"git": {"uids": [], "gids": []}}}',
    b'{"by_server": {"git": {"uids": [], "gids": [], "inherits": [], "more": 1}}}',
    b'{"by_server": {"git": {"uids": ["0"], "gids": [], "inherits": []}}}',  # no guessing
    b'{"by_server": {"git": {"uids": [1.5], "gids": [], "inherits": []}}}',
]


@pytest.mark.parametrize("text", NOT_ADMISSIONS)
def test_another_access_list_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_access_list(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        encode(SPEC).encode()[:-3],
        encode(SPEC).replace('"tasks"', '"more": 1, "tasks"').encode(),
        encode(SPEC).replace('"tasks": 1', '"tasks": "1"').encode(),
        encode(SPEC).encode().replace(b"git-mcp", b"\xff"),
    ],
)
def test_another_descriptor_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_spec(text)
