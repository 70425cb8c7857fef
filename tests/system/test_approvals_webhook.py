"""A team hears of what waits for approval where it works; who listens in cannot answer it."""

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.system import approving
from tests.system.bed import installed
from tests.system.bed.internet import Internet
from tests.system.bed.internet_map import BAD_AUTHORITY
from tests.system.bed.machine import Machine
from tests.system.bed.session import Session
from tests.system.releases import ON_ONE_RELEASE

pytestmark = ON_ONE_RELEASE

UNIT = "mcpwrap-webhook.service"
KEY = "/etc/mcpwrap/webhook.key"
HOOK = "https://api.good.test/hook"
TABLE = {"query": "CREATE TABLE hunter2 (id INTEGER)"}
WITHIN_S = 20.0


@pytest.fixture(scope="module")
def plugged(suite: str) -> Iterator[tuple[Machine, Internet]]:
    machine = installed.installed_machine(suite)
    try:
        with Internet(machine) as internet:
            approving.prepare(machine)
            approving.put(machine)
            yield machine, internet
    finally:
        machine.remove()


@pytest.fixture
def machine(plugged: tuple[Machine, Internet]) -> Iterator[Machine]:
    yield plugged[0]
    assert plugged[0].unannounced() == []


@pytest.fixture
def internet(plugged: tuple[Machine, Internet]) -> Internet:
    plugged[1].forget()
    return plugged[1]


def post_to(machine: Machine, url: str) -> str:
    """Apply a configuration with this webhook, or with none."""
    table = f'[approvals]\nwebhook = "{url}"\n' if url else ""
    machine.configure(table + approving.SERVERS)
    return machine.apply()


def until(holds: Callable[[], bool]) -> None:
    give_up_at_s = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < give_up_at_s
        time.sleep(0.05)


@contextmanager
def held(machine: Machine) -> Iterator[tuple[Session, dict[str, Any]]]:
    """Have alice's agent ask for something that waits; at the end bob denies it."""
    with machine.session("sqlite") as session:
        session.initialize()
        number = session.request("tools/call", {"name": "create_table", "arguments": TABLE})
        [[waiting]] = approving.steps(machine, ("await_pending", {}))
        yield session, waiting
        denied = {"id": waiting["id"], "digest": waiting["digest"], "verdict": "deny"}
        assert approving.step(machine, "decide", **denied).endswith("denied")
        session.answer_to(number)


def test_what_waits_is_posted_signed_and_without_what_it_says(
    machine: Machine, internet: Internet
) -> None:
    assert f"have the webhook post what waits for approval, signed with {KEY}" in post_to(
        machine, HOOK
    )
    assert machine.as_root(f"stat -c '%U %a' {KEY}").out == "root 600\n"
    assert post_to(machine, HOOK) == "nothing to do\n"
    with held(machine) as (_, waiting):
        until(lambda: bool(internet.posts()))
        [post] = internet.posts()
        at, _, mac = post.signature.removeprefix("t=").partition(",v1=")
        key = machine.read(KEY).strip().encode()
        signed = f"{at}.{post.body}".encode()
        assert mac == hmac.new(key, signed, hashlib.sha256).hexdigest()
        assert abs(int(at) - time.time()) < WITHIN_S
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
    assert len(internet.posts()) == 1


def test_the_webhook_answers_nothing(machine: Machine) -> None:
    """Not even if somebody takes it over: it is on the internet."""
    post_to(machine, HOOK)
    as_webhook = "setpriv --reuid=mcpwrap-webhook --regid=mcpwrap-webhook --clear-groups"
    with held(machine) as (_, waiting):
        answer = {"id": waiting["id"], "digest": waiting["digest"], "verdict": "approve"}
        plan: tuple[approving.Step, ...]
        plan = (("listed", {}), ("decide", answer), ("decide", {**answer, "proof": "polkit"}))
        seen, *refused = approving.steps(machine, *plan, user="root", through=as_webhook)
        assert [one["id"] for one in seen["pending"]] == [waiting["id"]]  # and sees it, so it asked
        assert refused[0] == "refused: not-you"
        assert refused[1].startswith("refused: ")


def test_a_restarted_gate_is_heard_again(machine: Machine, internet: Internet) -> None:
    post_to(machine, HOOK)
    machine.as_root("systemctl restart mcpwrap-gate")
    with held(machine):
        until(lambda: bool(internet.posts()))


def test_whom_the_machine_does_not_trust_is_told_nothing(
    machine: Machine, internet: Internet
) -> None:
    post_to(machine, f"https://{BAD_AUTHORITY}/hook")
    with held(machine):
        until(lambda: "CertificateError" in said(machine))
    assert internet.posts() == []
    assert said(machine).count("did not take a POST") == 1  # and then one line a minute


def said(machine: Machine) -> str:
    return "\n".join(str(entry.get("MESSAGE")) for entry in machine.journal("-u", UNIT))


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


def test_who_lets_agents_approve_their_own_is_told_each_time(machine: Machine) -> None:
    machine.configure(f"[approvals]\nsame_uid = true\n{approving.SERVERS}")
    for command in ("mcpwrap apply", "mcpwrap apply", "mcpwrap doctor || true"):
        out = machine.as_root(command).out
        assert "WIDENED by [approvals] same_uid" in out or "approvals need no proof" in out
    post_to(machine, "")
    assert "WIDENED" not in machine.as_root("mcpwrap plan").out
