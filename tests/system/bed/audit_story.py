"""Agents who call without pause, and somebody who kills: programs that run in a machine."""

# Sixteen sessions, each begun anew when it ends. Prints what each call was answered, by its name.
AGENTS = """
import json, subprocess, sys, threading, time

UNTIL = time.monotonic() + float(sys.argv[1])
STORY = sys.argv[2]  # by which its calls are told from those of others
answers = {}

def call(stub, name):
    tool = "drop" if name.endswith("0") else "run"
    code = f"open('seen', 'a').write('{name} ')"
    params = {"name": tool, "arguments": {"code": code, "called": name}}
    line = json.dumps({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params})
    stub.stdin.write(line.encode() + b"\\n")
    stub.stdin.flush()
    answer = stub.stdout.readline()
    if answer:
        result = json.loads(answer)["result"]
        text = result.get("content", [{}])[0].get("text", "")
        answers[name] = text or "done"
    return bool(answer)

def agent(number):
    n = 0
    while time.monotonic() < UNTIL:
        pipe = subprocess.PIPE
        stub = subprocess.Popen(
            ["mcpwrap-connect", "probe"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        )
        try:
            answered = True
            while answered and time.monotonic() < UNTIL:
                n += 1
                answered = call(stub, f"{STORY}-{number}-{n}")
        except BrokenPipeError:
            pass
        stub.kill()
        stub.communicate()

threads = [threading.Thread(target=agent, args=(number,)) for number in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(answers))
"""
# Each part in turn, one that is drawn of each; the gate as a whole last, since it begins anew.
KILLER = """
import os, random, signal, subprocess, sys, time

UNTIL = time.monotonic() + float(sys.argv[1])
killed = {}

def pids(*how):
    found = subprocess.run(["pgrep", *how], capture_output=True, text=True).stdout.split()
    return [int(pid) for pid in found]

def main_pid(unit):
    show = ["systemctl", "show", "-P", "MainPID", unit]
    return subprocess.run(show, capture_output=True, text=True).stdout.strip()

def parts():
    gate, wrapper = main_pid("mcpwrap-gate"), main_pid("mcpwrap@probe")
    yield "stub", pids("-f", "mcpwrap-connect probe")
    if gate != "0":
        yield "session", pids("-P", gate)
    yield "server", pids("-f", "/opt/probe.py")
    yield "wrapper", [int(wrapper)]
    yield "gate", [int(gate)]

turn = 0
while time.monotonic() < UNTIL:
    for part, found in parts():
        # The gate and the wrapper take all sessions with them: not in each round.
        if found and found[0] and (part not in {"wrapper", "gate"} or turn % 4 == 3):
            try:
                os.kill(random.choice(found), signal.SIGKILL)
                killed[part] = killed.get(part, 0) + 1
            except ProcessLookupError:
                pass
        time.sleep(0.1)
    turn += 1
print(killed)
"""
