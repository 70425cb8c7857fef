"""Validation of requests, and the bound of the memory that bodies take."""

import base64
import json
from typing import Any

import pytest

from mcpwrap.as_worker import request_body
from mcpwrap.as_worker.request_body import BodyMemory
from mcpwrap.core.wire.execution.worker_file import RunLimits
from mcpwrap.http_server.body_reader import BodyError

LIMITS = RunLimits(code_bytes=100)
MIB = 1024**2


def body(code: object = "1", **more: Any) -> bytes:
    return json.dumps({"code": code} | more).encode()


def encoded(count_bytes: int) -> str:
    return base64.b64encode(bytes(count_bytes)).decode()


@pytest.mark.parametrize(
    "valid",
    [
        body(),
        body("x" * 100),
        body("ä" * 50),
        body(timeout=None),
        body(timeout=86_400),  # lowered to the limit
        body(files={}),
        body(files={"ä b.txt": "", "c": "AA=="}),
        body(files={str(one): "" for one in range(32)}),
        body(files={"a": encoded(8 * MIB)}),
        body(packages=""),
        body(packages="0123456789abcdef" * 4),
    ],
)
def test_a_valid_request_is_taken(valid: bytes) -> None:
    assert request_body.validated(valid, LIMITS).code == json.loads(valid)["code"]


@pytest.mark.parametrize(
    ("invalid", "status", "why"),
    [
        (b"", 400, "not a valid request"),
        (b"[]", 400, "not a valid request"),
        (b'{"code": "\xff"}', 400, "not a valid request"),
        (b'{"code": "\\ud800"}', 400, "not a valid request"),  # half a surrogate pair
        (b"[" * 100_000, 400, "not a valid request"),
        (b"{}", 400, "missing required field `code`"),
        (body(code=1), 400, "Expected `str`"),
        (body(more=1), 400, "unknown field `more`"),
        (body(""), 400, "`code` is empty"),
        (body(" \n"), 400, "`code` is empty"),
        (body("x" * 101), 400, "101 bytes; at most 100 bytes are allowed (runs.code)"),
        (body("ä" * 51), 400, "102 bytes"),
        (body(timeout=0), 400, ">= 1"),
        (body(timeout=86_401), 400, "<= 86400"),
        (body(timeout=1.5), 400, "Expected `int | null`"),
        (body(timeout=True), 400, "Expected `int | null`"),
        (body(timeout="60"), 400, "Expected `int | null`"),
        (body(packages="../x"), 400, "Expected `str` matching regex"),
        (body(packages="0" * 64 + "\n"), 400, "Expected `str` matching regex"),
        (body(files=["a"]), 400, "Expected `object`"),
        (body(files={"a": 1}), 400, "Expected `str`"),
        (body(files={"a": "!"}), 400, "file 1 is not base64"),
        (body(files={"a": "", "b": "AA"}), 400, "file 2 is not base64"),
        (body(files={"a": "AA==\n"}), 400, "file 1 is not base64"),
        (body(files={"a": "ä"}), 400, "file 1 is not base64"),
        (body(files={"../a": ""}), 400, "the name of file 1 is not a plain file name"),
        (body(files={".a": ""}), 400, "not a plain file name"),
        (body(files={"": ""}), 400, "not a plain file name"),
        (body(files={"a\n": ""}), 400, "not a plain file name"),
        (body(files={"n" * 256: ""}), 400, "not a plain file name"),
        (body(files={str(one): "" for one in range(33)}), 400, "more than 32 files"),
        (body(files={"a": encoded(8 * MIB), "b": encoded(1)}), 413, "8388609 bytes; at most 8 MiB"),
    ],
)
def test_an_invalid_request_is_refused(invalid: bytes, status: int, why: str) -> None:
    with pytest.raises(BodyError) as refused:
        request_body.validated(invalid, LIMITS)
    assert refused.value.status == status
    assert why in str(refused.value)


def test_the_longest_valid_request_is_within_the_limit_of_the_body() -> None:
    files = {f"{one:0255}": encoded(8 * MIB // 32) for one in range(32)}
    longest = body("\x01" * 100, files=files, packages="0" * 64, timeout=86_400)
    assert request_body.validated(longest, LIMITS).code == "\x01" * 100
    assert len(longest) < request_body.max_body_bytes(LIMITS)
    assert request_body.max_body_bytes(RunLimits()) < 12 * MIB


def test_bodies_of_all_pools_share_a_bound() -> None:
    memory = BodyMemory(100)
    with memory.share("a") as one, memory.share("b") as other:
        one.grow(40)
        other.grow(50)
        with memory.share("c") as third, pytest.raises(BodyError) as refused:
            third.grow(11)
        assert (refused.value.status, refused.value.retry_after_s) == (429, 1)
        one.grow(10)
    with memory.share("c") as third:
        third.grow(50)  # nothing is held any more


def test_one_pool_leaves_half_of_it_to_others() -> None:
    memory = BodyMemory(100)
    with memory.share("a") as one, memory.share("a") as two:
        one.grow(30)
        two.grow(20)
        with pytest.raises(BodyError):
            two.grow(1)
        with memory.share("b") as other:
            other.grow(50)
