"""Runs of code: each in an account of its own, with nothing left for the next."""

from tests.system.bed.machine import Machine
from tests.system.support import python_servers
from tests.system.support.python_servers import run_all, run_python

STAGE = python_servers.with_python


def test_an_agent_has_code_executed(machine: Machine) -> None:
    printed, computed = run_all(machine, [{"code": "print(1)"}, {"code": "x = 6\nx * 7"}])
    assert (printed.stdout, printed.exit_code, printed.error) == ("1\n", 0, None)
    assert (computed.value, computed.stdout, computed.is_error) == ("42", "", False)


def test_a_run_has_an_account_of_its_own_and_no_network(machine: Machine) -> None:
    code = "import os, socket\nprint(os.getuid())\nsocket.socket()"
    result = run_python(machine, code)
    uids = {machine.uid_of(f"mcpj-python-{number}") for number in range(2)}
    assert int(result.stdout) in uids
    assert "Address family not supported" in result.stderr
    assert result.hint.startswith("runs have no network")
