"""Webhook from end to end: from pending calls of a gate to posts at a receiver."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcpwrap.as_webhook import delivery
from mcpwrap.as_webhook.delivery import WebhookSettings, serve
from tests.shared import pace
from tests.unit.as_webhook.gate import QUESTION, Gate, pending
from tests.unit.as_webhook.receiver import Receiver, receiver

KEY = b"k" * 32


@asynccontextmanager
async def serving(tmp_path: Path, *statuses: int) -> AsyncIterator[tuple[Gate, Receiver]]:
    """Serve between a gate and a receiver during the block."""
    gate = Gate(tmp_path / "approve.sock")
    async with receiver(*statuses) as there:
        around = WebhookSettings(url=there.url, key=KEY, door=gate.path)
        served = asyncio.ensure_future(serve(around))
        try:
            yield gate, there
        finally:
            served.cancel()
            with suppress(asyncio.CancelledError):
                await served
            gate.close()


async def next_body(there: Receiver) -> dict[str, Any]:
    async with asyncio.timeout(pace.WAIT_S):
        _, body = await there.came.get()
    decoded: dict[str, Any] = msgspec.json.decode(body)
    return decoded


def test_each_request_is_posted_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as (gate, there):
            gate.questions = dict.fromkeys(["a", "b", "c"], QUESTION)
            gate.tell(pending("a"))
            assert (await next_body(there))["id"] == "a"
            gate.tell(pending("a"), pending("b"))
            assert (await next_body(there))["id"] == "b"
            gate.tell(pending("b"))
            gate.tell(pending("b"), pending("c"))
            assert (await next_body(there))["id"] == "c"
            assert there.came.empty()

    asyncio.run(story())


def test_a_post_has_no_value_of_an_argument(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as (gate, there):
            gate.questions = {"a": QUESTION}
            gate.tell(pending("a"))
            async with asyncio.timeout(pace.WAIT_S):
                _, body = await there.came.get()
            assert b"hunter2" not in body
            assert msgspec.json.decode(body)["arguments"] == {
                "query": {"type": "string", "characters": 24}
            }

    asyncio.run(story())


def test_an_approval_that_is_answered_early_is_not_posted(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving(tmp_path) as (gate, there):
            gate.questions = {"b": QUESTION}
            gate.tell(pending("gone"), pending("b"))
            assert (await next_body(there))["id"] == "b"

    asyncio.run(story())


def test_it_reconnects_after_a_restart_of_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    again = delivery.watch_listings
    monkeypatch.setattr(delivery, "watch_listings", lambda *args: again(*args, again_s=0.01))

    async def story() -> None:
        async with serving(tmp_path) as (gate, there):
            gate.questions = dict.fromkeys(["a", "b"], QUESTION)
            gate.tell(pending("a"))
            await next_body(there)
            gate.hang_up()
            gate.tell(pending("b"))
            assert (await next_body(there))["id"] == "b"

    asyncio.run(story())
    first, *rest = capsys.readouterr().err.splitlines()
    assert "cannot reach the gate" in first
    assert rest == ["the gate sends pending approvals again"]


def test_a_slow_receiver_blocks_four_posts_but_not_the_gate(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with serving(tmp_path) as (gate, there):
            there.may_answer.clear()
            ids = [f"r{number}" for number in range(10)]
            gate.questions = dict.fromkeys(ids, QUESTION)
            gate.tell(*map(pending, ids))
            there.may_answer.set()
            assert sorted([(await next_body(there))["id"] for _ in ids]) == ids

    asyncio.run(story())
