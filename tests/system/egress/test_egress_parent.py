"""Parent proxy of a company: every byte that leaves the machine goes through it."""

import pytest

from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.egress.egress_clients import CONFIG, booted
from tests.system.support.egress_sessions import play

STAGE = booted
ADDRESS, PORT = "10.9.9.9", 3129  # inside the company
SERVERS = {"false": "probe", "true": "opened"}


@pytest.mark.parametrize("intercept", SERVERS)
def test_everything_goes_through_the_parent(
    machine: Machine, internet: Internet, intercept: str
) -> None:
    machine.as_root(f"ip address replace {ADDRESS}/32 dev lo")
    command = f"exec {machine.guest_command('parent_proxy', 'serve', ADDRESS, PORT)}"
    with machine.session("", user="root", command=command) as parent:
        assert parent.read_line() == "up"
        machine.configure(f'[egress]\nparent = "{ADDRESS}:{PORT}"\n{CONFIG}')
        machine.apply()
        internet.forget()
        with machine.session(SERVERS[intercept]) as session:
            get = "by_urllib('https://{}/small')"
            assert play(session, get.format("api.good.test")).startswith("200 ")
            assert parent.read_line().startswith("CONNECT api.good.test:443 ")
            assert play(session, get.format("other.test")).startswith("refused")
        assert internet.hosts() == {"api.good.test"}
    machine.configure(CONFIG)
    machine.apply()
