"""What stories of the way out have in common: clients for inside the sandbox, and who uses them."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.bed import installed
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.bed.nspawn import Profile
from tests.system.bed.session import PROBE

# A module beside the probe: a session imports it, and what it starts stays until the session ends.
CLIENT = """
import hashlib, json, os, socket, ssl, threading, time

OWN = os.environ["HTTPS_PROXY"].rpartition("/")[2].partition(":")[0]
started = {}

class Refused(OSError):
    def __init__(self, head):
        super().__init__(head.decode())
        self.head = head.decode()

def head_of(s):
    head = b""
    while b"\\r\\n\\r\\n" not in head:
        piece = s.recv(1)  # not a byte of what comes after
        if not piece: raise ConnectionError("no answer")
        head += piece
    return head

def tunnel(host, port=443):
    s = socket.create_connection((OWN, 3128), 15)
    s.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n".encode())
    head = head_of(s)
    if head.split()[1] != b"200": raise Refused(head)
    return s

def plainly(host):
    "As a program does that knows no proxy."
    return socket.create_connection((host, 443), 15)

TRUSTED = ssl.create_default_context()  # once: reading all certificates takes longer than the rest

def secured(host, s=None, context=TRUSTED):
    return context.wrap_socket(s or tunnel(host), server_hostname=host)

def say(s, line, host, more=""):
    s.sendall(f"{line} HTTP/1.1\\r\\nHost: {host}\\r\\n{more}\\r\\n".encode())
    return s.makefile("rb")

def status_and_headers(answer):
    status = answer.readline().split()
    headers = {}
    while line := answer.readline().strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return int(status[1]), headers

def ask(path="/small", host="api.good.test", method="GET", context=TRUSTED):
    "Ask once by the proxy; return the status and the text."
    with secured(host, context=context) as s:
        answer = say(s, f"{method} {path}", host, "Connection: close\\r\\n")
        status, _ = status_and_headers(answer)
        return [status, answer.read().decode(errors="replace")]

def status(**how):
    "What came of asking once: a status, that of a refused CONNECT, or the error."
    try: return ask(**how)[0]
    except Refused as refused: return "CONNECT " + refused.head.split()[1]
    except OSError as error: return type(error).__name__

def ask_directly(host="api.good.test"):
    "As a program does that knows no proxy: the front is where the name leads."
    with secured(host, socket.create_connection((host, 443), 10)) as s:
        return status_and_headers(say(s, "GET /small", host, "Connection: close\\r\\n"))[0]

def reached(targets, wait_s=0.7):
    "Which of these addresses and ports answer to TCP."
    found = []
    for address, port in targets:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(wait_s)
            if s.connect_ex((address, port)) == 0: found.append([address, port])
    return found

class Events:
    "A stream of events: what has come, and by how much too late."
    def __init__(self, count, interval_s, host="api.good.test", plain=None):
        self.s = secured(host, plain)
        self.answer = say(self.s, f"GET /sse?n={count}&interval={interval_s}", host)
        self.status, _ = status_and_headers(self.answer)
        self.count, self.numbers, self.latest_s, self.error = count, [], 0.0, ""
        self.s.settimeout(30 + interval_s)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
    def read(self):
        try:
            while len(self.numbers) < self.count:
                line = self.answer.readline()
                if not line: raise ConnectionError("it ended")
                if line.startswith(b"data: "):
                    event = json.loads(line[6:])
                    self.numbers.append(event["n"])
                    self.latest_s = max(self.latest_s, time.time() - event["at"])
        except Exception as error: self.error = repr(error)
    def said(self):
        whole = self.numbers == list(range(len(self.numbers)))
        return {"came": len(self.numbers), "in order": whole, "error": self.error,
            "latest_s": round(self.latest_s, 3), "status": self.status}

class Crowd:
    "New connections, one after the other in each of some threads, until there were enough."
    def __init__(self, at_least, threads=4, by=tunnel):
        self.by = by
        self.left, self.enough, self.errors, self.slowest_s = at_least, False, [], 0.0
        self.done, self.lock = 0, threading.Lock()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]
        for thread in self.threads: thread.start()
    def run(self):
        while not (self.enough and self.done >= self.left):
            began = time.monotonic()
            try:
                with secured("api.good.test", self.by("api.good.test")) as s:
                    status, _ = status_and_headers(say(s, "HEAD /small", "api.good.test"))
                    if status != 200: raise OSError(f"status {status}")
                error = None
            except Exception as failure: error = f"{time.time():.3f} {failure!r}"
            with self.lock:
                self.done += 1
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                if error: self.errors.append(error)
    def said(self, wait_s=15):
        give_up_at = time.monotonic() + wait_s
        for thread in self.threads: thread.join(max(0, give_up_at - time.monotonic()))
        return {"alive": any(t.is_alive() for t in self.threads), "done": self.done,
            "errors": self.errors[:5], "failed": len(self.errors),
            "slowest_s": round(self.slowest_s, 3)}
"""


def a_server(name: str, settings: str) -> str:
    """Return a probe under this name, with these settings of ours."""
    return f"""
[mcp_servers.{name}]
command = "/usr/bin/python3"
args = ["/opt/probe.py"]
[mcp_servers.{name}.mcpwrap]
{settings}
"""


@contextmanager
def machine_with_internet(
    suite: str, profile: Profile, config: str
) -> Iterator[tuple[Machine, Internet]]:
    """Boot a machine, plug it in, and apply the configuration."""
    machine = installed.installed_machine(suite, profile)
    try:
        machine.add_person("alice", groups="mcpwrap")
        machine.write("/opt/probe.py", PROBE)
        machine.write("/opt/outgoing.py", CLIENT)
        with Internet(machine) as internet:
            machine.configure(config)
            machine.apply()
            yield machine, internet
    finally:
        machine.remove()
