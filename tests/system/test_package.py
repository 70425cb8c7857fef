"""The first day and the last: install, wrap, use, purge."""

from collections.abc import Callable

from tests.system.bed.machine import Machine
from tests.system.servers import THREE_SERVERS

# Every file of the root with what it is; left out is what apt, logs and a running system write.
SNAPSHOT = r"""
import hashlib, json, os, stat
skip = ("/proc", "/sys", "/dev", "/run", "/tmp", "/root", "/home", "/var/log", "/var/cache",
        "/var/tmp", "/var/lib/apt", "/var/lib/dpkg", "/var/lib/systemd", "/etc/.pwd.lock")
seen = {}
for top, folders, files in os.walk("/"):
    folders[:] = [f for f in folders if not os.path.join(top, f).startswith(skip)]
    for name in folders + files:
        path = os.path.join(top, name)
        info = os.lstat(path)
        if path.startswith(skip) or name.endswith("-"): continue  # /etc/passwd-: shadow's own copy
        what = [oct(info.st_mode), info.st_uid, info.st_gid]
        if stat.S_ISREG(info.st_mode):
            # Outside /etc nothing is rewritten in place, so size and time tell as well as a hash.
            what += [info.st_size, info.st_mtime_ns]
            if path.startswith("/etc/"):
                what[-1] = hashlib.sha256(open(path, "rb").read()).hexdigest()
        if stat.S_ISLNK(info.st_mode): what.append(os.readlink(path))
        seen[path] = what
seen["units"] = sorted(os.popen("systemctl list-units --all --plain --no-legend 'mcpwrap*'"))
seen["rules"] = os.popen("nft list ruleset").read()
print(json.dumps(seen))
"""


def test_from_apt_install_to_a_second_apply(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    machine.as_root("apt-get install -y /root/mcpwrap.deb")
    machine.as_root("usermod -aG mcpwrap alice")
    machine.configure(THREE_SERVERS)
    assert "step" in machine.as_root("mcpwrap plan", status=10).out
    assert machine.apply().endswith("done\n")
    assert machine.apply() == "nothing to do\n"
    machine.as_root("systemctl start mcpwrap@everything")
    status = machine.as_root("systemctl status mcpwrap@everything").out
    assert "Active: active (running)" in status
    assert 'Status: "ready: 0 of 16 sessions' in status
    assert machine.call_tool("everything", "echo", {"message": "hello"}) == "Echo: hello"


def test_purge_leaves_the_root_as_it_was(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    before = machine.probe(SNAPSHOT)
    machine.as_root("apt-get install -y /root/mcpwrap.deb")
    machine.as_root("usermod -aG mcpwrap alice")
    machine.configure(THREE_SERVERS)
    machine.apply()
    machine.call_tool("memory", "read_graph")
    machine.as_root("systemctl start mcpwrap@everything")
    during = machine.probe(SNAPSHOT)
    assert len(during) > len(before) + 100  # the twin: the snapshot sees what is there
    machine.as_root("apt-get purge -y mcpwrap")
    after = machine.probe(SNAPSHOT)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert changed == set()
    assert machine.as_root("getent passwd | grep -c mcpw || true").out == "0\n"


def test_removing_keeps_the_configuration_and_shuts_everything(
    boot: Callable[..., Machine],
) -> None:
    machine = boot()
    machine.configure(THREE_SERVERS)
    machine.apply()
    with machine.session("everything") as session:
        session.initialize()
        machine.as_root("apt-get remove -y mcpwrap")
        session.close()
    assert machine.as_root("pgrep -u mcpw-everything || true").out == ""
    assert "everything" in machine.read("/etc/mcpwrap/config.toml")
    assert "wrapped" in machine.as_root("nft list table inet mcpwrap").out  # nothing was opened


def test_an_upgrade_restarts_wrappers_and_keeps_the_rules(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    machine.as_root("apt-get install -y /root/mcpwrap.deb && usermod -aG mcpwrap alice")
    machine.configure(THREE_SERVERS)
    machine.apply()
    machine.as_root("systemctl start mcpwrap@everything")
    pid = machine.show("mcpwrap@everything", "MainPID")["MainPID"]
    rules = machine.as_root("nft list set inet mcpwrap wrapped").out
    machine.as_root("apt-get install -y --reinstall /root/mcpwrap.deb")
    assert machine.as_root("nft list set inet mcpwrap wrapped").out == rules
    assert machine.show("mcpwrap@everything", "MainPID")["MainPID"] != pid
    assert machine.apply() == "nothing to do\n"
    assert machine.call_tool("everything", "echo", {"message": "hello"}) == "Echo: hello"
