"""Approval webhook: a team is notified of pending calls; a reader of the posts cannot answer."""

import hashlib
import hmac
import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.shared import pace
from tests.system.approvals import asking
from tests.system.bed.internet import Connected, Internet
from tests.system.bed.internet_map import BAD_AUTHORITY
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.support import approvers
from tests.system.support.tiers import ON_ONE_RELEASE, only_in_test_all

pytestmark = ON_ONE_RELEASE
STAGE = asking.booted

UNIT = "mcpwrap-webhook.service"
KEY = "/etc/mcpwrap/webhook.key"
HOOK = "https://api.good.test/hook"
TABLE = {"query": "CREATE TABLE hunter2 (id INTEGER)"}


@pytest.fixture(scope="module", autouse=True)
def _policy(stage: Connected) -> None:
    """Put the policy in force once: after a restart of the gate the webhook reconnects in 5 s."""
    approvers.put(stage.machine)


def post_to(machine: Machine, url: str) -> str:
    """Apply a configuration with this webhook, or without one."""
    table = f'[approvals]\nwebhook = "{url}"\n' if url else ""
    machine.configure(table + approvers.SERVERS)
    return machine.apply()


@contextmanager
def held(machine: Machine) -> Iterator[tuple[Session, dict[str, Any]]]:
    """Have alice's agent make a call that waits; at the end bob denies it."""
    with machine.session("sqlite") as session:
        session.initialize()
        number = session.request("tools/call", {"name": "create_table", "arguments": TABLE})
        [waiting] = approvers.step(machine, "await_pending")
        yield session, waiting
        denied = {"id": waiting["id"], "digest": waiting["digest"], "verdict": "deny"}
        assert approvers.step(machine, "decide", **denied).endswith("denied")
        session.answer_to(number)


def test_what_waits_is_posted_signed_and_without_what_it_says(
    machine: Machine, internet: Internet
) -> None:
    assert f"make the webhook post pending approvals, signed with {KEY}" in post_to(machine, HOOK)
    assert machine.look(f"stat -c '%U %a' {KEY}") == "root 600\n"
    assert post_to(machine, HOOK) == "nothing to do\n"
    began_s = time.time()
    with held(machine) as (_, waiting):
        pace.until(lambda: bool(internet.posts()))
        [post] = internet.posts()
        at, _, mac = post.signature.removeprefix("t=").partition(",v1=")
        key = machine.read(KEY).strip().encode()
        signed = f"{at}.{post.body}".encode()
        assert mac == hmac.new(key, signed, hashlib.sha256).hexdigest()
        assert int(began_s) <= int(at) <= time.time()
        body = json.loads(post.body)
        assert body["agent"] == {"uid": machine.uid_of("alice"), "account": "alice"}
        assert (body["server"], body["target"], body["rule"]) == (
            "sqlite", "create_table", "writes-are-approved",
        )  # fmt: skip
        assert (body["id"], body["sha256"], body["size"]) == (
            waiting["id"], waiting["digest"], waiting["size"],
        )  # fmt: skip
        assert body["arguments"] == {"query": {"type": "string", "characters": len(TABLE["query"])}}
        assert "hunter2" not in post.body
        assert body["url"] == f"http://127.0.0.1:52080/approval/{waiting['id']}"
    # A post without a response in ten seconds is repeated.
    assert {json.loads(each.body)["id"] for each in internet.posts()} == {waiting["id"]}


def test_the_webhook_answers_nothing(machine: Machine) -> None:
    """Not even after a takeover: it is on the internet."""
    post_to(machine, HOOK)
    as_webhook = "setpriv --reuid=mcpwrap-webhook --regid=mcpwrap-webhook --clear-groups"
    with held(machine) as (_, waiting):
        answer = {"id": waiting["id"], "digest": waiting["digest"], "verdict": "approve"}
        plan: tuple[approvers.Step, ...]
        plan = (("listed", {}), ("decide", answer), ("decide", {**answer, "proof": "polkit"}))
        seen, *refused = approvers.steps(machine, *plan, user="root", through=as_webhook)
        assert [one["id"] for one in seen["pending"]] == [waiting["id"]]  # so it was queried
        assert refused[0] == "refused: not-you"
        assert refused[1].startswith("refused: ")


@only_in_test_all("waits 5 s for the webhook to try again; the posting itself is shown above")
def test_a_restarted_gate_is_heard_again(machine: Machine, internet: Internet) -> None:
    post_to(machine, HOOK)
    machine.as_root("systemctl restart mcpwrap-gate")
    with held(machine):
        pace.until(lambda: bool(internet.posts()))


def test_whom_the_machine_does_not_trust_is_told_nothing(
    machine: Machine, internet: Internet
) -> None:
    post_to(machine, f"https://{BAD_AUTHORITY}/hook")
    before = len(complaints(machine))
    with held(machine):
        pace.until(lambda: len(complaints(machine)) > before)
    assert internet.posts() == []
    came = complaints(machine)[before:]
    assert "CertificateError" in came[0][1]
    # Of the attempts that follow, one line a minute.
    assert all(b - a > 50 for (a, _), (b, _) in itertools.pairwise(came))


def complaints(machine: Machine) -> list[tuple[float, str]]:
    """Return the times at which the webhook's service logged a refused POST, and the lines."""
    lines = [
        (int(entry["__REALTIME_TIMESTAMP"]) / 1e6, str(entry.get("MESSAGE")))
        for entry in machine.journal("-u", UNIT)
    ]
    return [(at_s, line) for at_s, line in lines if "did not accept a POST" in line]


def test_what_is_taken_out_ends(machine: Machine, internet: Internet) -> None:
    post_to(machine, HOOK)
    assert machine.show(UNIT, "ActiveState", "UnitFileState") == {
        "ActiveState": "active", "UnitFileState": "enabled",
    }  # fmt: skip
    assert f"stop {UNIT}" in post_to(machine, "")
    assert machine.show(UNIT, "ActiveState", "UnitFileState") == {
        "ActiveState": "inactive", "UnitFileState": "disabled",
    }  # fmt: skip
    with held(machine):
        pass
    assert internet.posts() == []


@only_in_test_all("a warning about a setting of root's; nothing is approved in this story")
def test_who_lets_agents_approve_their_own_is_told_each_time(machine: Machine) -> None:
    machine.configure(f"[approvals]\nsame_uid = true\n{approvers.SERVERS}")
    for command in ("mcpwrap apply", "mcpwrap apply", "mcpwrap doctor || true"):
        out = machine.as_root(command).out
        assert "WIDENED by [approvals] same_uid" in out or "approvals need no proof" in out
    post_to(machine, "")
    assert "WIDENED" not in machine.as_root("mcpwrap plan").out
