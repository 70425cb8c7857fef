"""Where a company has a proxy, every byte that leaves goes through it."""

from collections.abc import Callable

import pytest

from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.clients import PYTHON_GET

# A proxy at an address inside the company: it resolves, connects, and says for whom.
PROXY = """
import os, socket, sys, threading
def pass_on(a, b):
    try:
        while data := a.recv(65536): b.sendall(data)
    except OSError: pass
    b.close()
def serve(near):
    head = b""
    while b"\\r\\n\\r\\n" not in head: head += near.recv(4096)
    place = head.split()[1].decode()
    print(head.split(b"\\r\\n")[0].decode(), flush=True)
    host, _, port = place.rpartition(":")
    far = socket.create_connection((host, int(port)))
    near.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
    threading.Thread(target=pass_on, args=(near, far), daemon=True).start()
    pass_on(far, near)
server = socket.create_server(("10.9.9.9", 3129))
def accept():
    while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
print("up", flush=True)
sys.stdin.read()
os._exit(0)
"""
CONFIG = """
[egress]
parent = "10.9.9.9:3129"
[mcp_servers.probe]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.probe.mcpwrap]
egress = ["api.good.test"]
intercept = {intercept}
"""


@pytest.mark.parametrize("intercept", ["false", "true"])
def test_everything_goes_through_the_parent(boot: Callable[..., Machine], intercept: str) -> None:
    machine = boot()
    with Internet(machine) as internet:
        machine.write("/opt/parent.py", PROXY)
        machine.as_root("ip address add 10.9.9.9/32 dev lo")
        command = "exec python3 -u /opt/parent.py"
        with machine.session("", user="root", command=command) as parent:
            assert parent.read_line() == "up"
            machine.configure(CONFIG.format(intercept=intercept))
            machine.apply()
            internet.forget()
            with machine.session("probe") as session:
                get = PYTHON_GET.format(url="https://api.good.test/small", handlers="[]")
                assert session.evaluate(get).startswith("200 ")
                assert parent.read_line().startswith("CONNECT api.good.test:443 ")
                other = PYTHON_GET.format(url="https://other.test/small", handlers="[]")
                assert session.evaluate(other).startswith("refused")
            assert {seen.sni for seen in internet.connections()} == {"api.good.test"}
