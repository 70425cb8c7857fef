"""Workers behind HAProxy: no run is lost, and none is executed twice."""

import json
import re
import shlex
import time
from collections.abc import Iterator

import pytest

from mcpwrap.core.execution.worker_errors import MAY_HAVE_RUN
from tests.shared import pace
from tests.system.execution import fleet
from tests.system.execution.fleet import Fleet, digest, runs_of
from tests.system.execution.session_calls import MAX_CALLS, Calls
from tests.system.support.python_servers import run_python
from tests.system.support.tiers import only_in_test_all

STAGE = fleet.behind_haproxy
pytestmark = only_in_test_all("four machines; a worker for others is in test_worker_commands.py")
RUNS = 100


@pytest.fixture(autouse=True)
def nothing_unannounced(stage: Fleet) -> Iterator[None]:
    """Fail on a line that a story has not announced, on each machine."""
    yield
    for machine in (stage.machine, *stage.workers.values()):
        assert machine.unannounced() == []


def code_of(number: int) -> str:
    """Return a code that no other run has, and that takes long enough for queues to fill."""
    return f"import time\ntime.sleep(0.2)\nprint({number})"


def test_no_run_is_lost_and_none_is_executed_twice(stage: Fleet) -> None:
    draining, dying = stage.workers["worker1"], stage.workers["worker3"]
    codes = [code_of(number) for number in range(RUNS)]
    with stage.machine.session("python") as session:
        session.initialize()
        calls = Calls(session, codes)
        calls.until(20)
        draining.as_root("mcpwrap worker drain")
        pace.until(lambda: not any(runs_of(draining).values()))
        before = sum("worker1" in where for where in stage.executed().values())
        calls.until(len(calls.result_by_code) + 20)
        assert sum("worker1" in where for where in stage.executed().values()) == before > 0
        draining.as_root("mcpwrap worker resume")
        stage.until_all_are_up()
        # The results until then are there already; after them all workers have runs again.
        calls.until(len(calls.result_by_code) + MAX_CALLS + 10)
        stage.lan.lose_power(dying)
        calls.until(RUNS)
    dying.boot_again()
    stage.lan.plug(dying, fleet.ADDRESSES["worker3"])
    executed = stage.executed()
    stage.until_all_are_up()  # it has come back by itself

    lost = {code: error for code in codes if (error := calls.error_of(code))}
    assert 0 < len(lost) <= 5 * fleet.SLOTS["worker3"]  # what the machine had when it died
    for code, error in lost.items():
        assert MAY_HAVE_RUN in error
        assert executed.get(digest(code), ["worker3"]) == ["worker3"]
    for number, code in enumerate(codes):
        if code not in lost:
            assert calls.stdout_of(code) == f"{number}\n"
            assert len(executed[digest(code)]) == 1, stage.lines_about(code)
    by_worker = {name: sum([name] == where for where in executed.values()) for name in fleet.SLOTS}
    assert all(by_worker.values())


def test_a_request_that_a_worker_refuses_is_executed_by_another(stage: Fleet) -> None:
    """All places of one worker are taken by requests that HAProxy does not know of."""
    places = 5 * fleet.SLOTS["worker2"]
    url = f"https://{fleet.ADDRESSES['worker2']}:{fleet.PORT}"
    given = [url, fleet.AUTHORITY, stage.token, "import time\ntime.sleep(60)", places + 1]
    hold = stage.machine.guest_command("held_requests", "hold", *given)
    codes = [f"print({number}, 'of those that are refused')" for number in range(6)]
    before = rejections(stage, "worker2")
    with stage.machine.session("", user="root", command=f"exec {hold}") as holder:
        assert json.loads(holder.read_line()) == [200] * places + [429]
        assert rejections(stage, "worker2") == before + 1
        with stage.machine.session("python") as session:
            session.initialize()
            calls = Calls(session, codes)
            calls.until(len(codes))
    assert rejections(stage, "worker2") > before + 1
    executed = stage.executed()
    for number, code in enumerate(codes):
        assert calls.stdout_of(code) == f"{number} of those that are refused\n"
        assert executed[digest(code)] in (["worker1"], ["worker3"])


def rejections(stage: Fleet, worker: str) -> int:
    """Return the number of requests that a worker has refused with 429."""
    found = re.search(r'rejected_total\{pool="worker",status="429"\} (\d+)', metrics(stage, worker))
    return int(found[1]) if found else 0


def metrics(stage: Fleet, worker: str) -> str:
    """Return the text of a worker's `GET /metrics`."""
    url = f"https://{fleet.ADDRESSES[worker]}:{fleet.PORT}/metrics"
    curl = f"curl -sSf --cacert {fleet.AUTHORITY} -H @- {url}"
    return stage.machine.as_root(curl, stdin=f"Authorization: Bearer {stage.token}\n").out


def test_a_call_whose_agent_has_gone_ends_its_run(stage: Fleet) -> None:
    with stage.machine.session("python") as session:
        session.initialize()
        Calls(session, ["import time\ntime.sleep(50)"])
        pace.until(lambda: running(stage) == 1)
    give_up_at = time.monotonic() + pace.promised(5.0)
    while running(stage):
        assert time.monotonic() < give_up_at


def running(stage: Fleet) -> int:
    """Return the number of runs on all workers."""
    return sum(runs_of(worker)["running"] for worker in stage.workers.values())


def test_no_code_goes_to_a_machine_without_a_certificate_of_the_authority(stage: Fleet) -> None:
    code = "print('for the authority alone')"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc -days 1"
    made += f" -subj /CN=balancer -addext subjectAltName=IP:{fleet.BALANCER},DNS:worker1"
    haproxy, worker = stage.machine, stage.workers["worker1"]
    pem = haproxy.read("/etc/haproxy/balancer.pem")
    old = {path: worker.read(path) for path in (fleet.CERTIFICATE, fleet.KEY)}
    try:
        haproxy.as_root(f"{made} -keyout /root/other.key -out /root/other.pem")
        other = haproxy.read("/root/other.pem") + haproxy.read("/root/other.key")
        haproxy.write("/etc/haproxy/balancer.pem", other, mode=0o600)
        haproxy.as_root("systemctl restart haproxy")
        refused = run_python(haproxy, code)
        assert refused.is_error
        assert refused.text.endswith("so the code was not executed [E-WORKER-CERTIFICATE]")

        haproxy.write("/etc/haproxy/balancer.pem", pem, mode=0o600)
        worker.as_root(f"{made} -keyout {fleet.KEY} -out {fleet.CERTIFICATE}")
        worker.as_root("systemctl restart mcpwrap-worker")
        haproxy.as_root("systemctl restart haproxy")
        pace.until(lambda: not stage.is_up("worker1"))
        for _ in range(3):
            assert run_python(haproxy, code).stdout == "for the authority alone\n"
        assert "worker1" not in stage.executed()[digest(code)]
    finally:
        for path, text in old.items():
            worker.write(path, text, mode=0o600)
        worker.as_root("systemctl restart mcpwrap-worker")
        haproxy.write("/etc/haproxy/balancer.pem", pem, mode=0o600)
        haproxy.as_root("systemctl restart haproxy")
        stage.until_all_are_up()


def test_another_machine_gets_nothing_without_token_and_tls(stage: Fleet) -> None:
    """From a machine that has the authority's certificate, and so could trust the worker."""
    place = f"{fleet.ADDRESSES['worker1']}:{fleet.PORT}"
    execute = ["-d", '{"code": "print(1)"}', f"https://{place}/execute"]
    assert status(stage, stage.token, *execute) == 200  # the twin
    for token in ("", stage.token[:-1], f"{stage.token}0", stage.token.upper()):
        assert status(stage, token, *execute) == 401, token
        assert status(stage, token, f"https://{place}/metrics") == 401, token
    assert status(stage, "", f"https://{place}/healthz") == 200  # totals, for load balancers
    assert status(stage, stage.token, "--tls-max", "1.2", *execute) == 0
    assert status(stage, stage.token, *execute[:2], f"http://{place}/execute") == 0
    # The port on loopback is not there for other machines.
    assert status(stage, stage.token, f"http://{fleet.ADDRESSES['worker1']}:52200/healthz") == 0


def status(stage: Fleet, token: str, *arguments: str) -> int:
    """Return the status of the reply to curl(1), 0 if there is none."""
    given = shlex.join(["--cacert", fleet.AUTHORITY, "-H", "@-", *arguments])
    curl = f"curl -s -o /dev/null -w '%{{http_code}}' {given} || true"
    return int(stage.machine.as_root(curl, stdin=f"Authorization: Bearer {token}\n").out)
