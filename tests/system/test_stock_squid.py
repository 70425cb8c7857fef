"""Debian's own Squid stays off where it came along with us, and on where it was there before."""

from collections.abc import Callable

from tests.system.bed.machine import Machine

# The packages as apt would bring them, made from what is installed: machines have no network. Their
# scripts, units and control files are Debian's own. Debian 13 has the unit in a second package.
REPACK = r"""
import hashlib, json, os, shutil, subprocess
REPO = "/root/repo"

def said(*argv): return subprocess.run(argv, stdout=subprocess.PIPE, text=True).stdout

def control_of(name):
    kept, skip = [], False
    for line in said("dpkg-query", "-s", name).splitlines():
        if not line.startswith(" "): skip = line.split(":")[0] in ("Status", "Conffiles")
        if not skip: kept.append(line)
    return "\n".join(kept)

def copy_files(name, tree):
    for path in said("dpkg", "-L", name).splitlines():
        if not os.path.lexists(path): continue  # left out by the recipe of the root: manual pages
        folder, base = os.path.split(path)
        target = f"{tree}{os.path.realpath(folder)}/{base}"
        if os.path.isdir(path) and not os.path.islink(path): os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)

def repack(name):
    tree, deb = f"/root/tree-{name}", f"{REPO}/{name}.deb"
    os.makedirs(f"{tree}/DEBIAN")
    copy_files(name, tree)
    for kind in ("preinst", "postinst", "prerm", "postrm", "conffiles", "triggers"):
        if os.path.exists(path := f"/var/lib/dpkg/info/{name}.{kind}"):
            shutil.copy2(path, f"{tree}/DEBIAN/{kind}")
    open(f"{tree}/DEBIAN/control", "w").write(control_of(name) + "\n")
    subprocess.run(["dpkg-deb", "-b", tree, deb], check=True, stdout=subprocess.DEVNULL)
    data = open(deb, "rb").read()
    digest = hashlib.sha256(data).hexdigest()
    return f"{control_of(name)}\nFilename: ./{name}.deb\nSize: {len(data)}\nSHA256: {digest}\n"

os.makedirs(REPO)
def is_here(name): return "Status: install ok installed" in said("dpkg-query", "-s", name)
names = [name for name in ("squid", "squid-openssl") if is_here(name)]
open(f"{REPO}/Packages", "w").write("\n".join(map(repack, names)))
open("/root/repo.list", "w").write(f"deb [trusted=yes] file:{REPO} ./\n")
print(json.dumps(names))
"""
APT = "apt-get -y -o Dir::Etc::sourcelist=/root/repo.list -o Dir::Etc::sourceparts=-"
STATE = "systemctl is-active squid.service || true"
# Who has killed a Squid need not wait for it; but on cgroup v1 systemd 252 does not always see its
# children end.
IN_FIVE_S = "[Service]\nTimeoutStopSec=5\n"
DROP_IN = "/etc/systemd/system/squid.service.d/bed.conf"
LISTENS = "ss -Hltn sport = 3128"


def without_squid(machine: Machine) -> None:
    """Take Squid off, and have a source from which apt can bring it."""
    names = " ".join(machine.probe(REPACK))
    machine.as_root(f"apt-get purge -y {names} && {APT} update")
    machine.as_root("test ! -e /usr/sbin/squid")


def test_squid_that_came_along_stays_off(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    without_squid(machine)
    done = machine.as_root(f"{APT} install /root/mcpwrap.deb").out
    assert "Setting up squid-openssl" in done  # nobody named it: it is recommended
    assert machine.as_root("systemctl is-enabled squid.service").out == "enabled\n"
    assert machine.as_root(STATE).out == "inactive\n"
    machine.as_root("systemctl restart squid.service")  # a condition that is not met is no failure
    assert machine.as_root(STATE).out == "inactive\n"
    machine.reboot()
    assert machine.as_root(STATE).out == "inactive\n"
    assert machine.as_root(LISTENS).out == ""
    # The twin, and what the manual page says to whoever wants it.
    machine.as_root("rm /var/lib/mcpwrap/stock-squid-stays-off; systemctl start squid.service")
    assert machine.as_root(STATE).out == "active\n"


def test_squid_that_was_there_stays_on(boot: Callable[..., Machine]) -> None:
    machine = boot(package=False)
    machine.write(DROP_IN, IN_FIVE_S)
    machine.as_root("systemctl daemon-reload; systemctl enable --now squid.service")
    pid = machine.show("squid.service", "MainPID")
    machine.as_root("apt-get install -y /root/mcpwrap.deb")
    assert machine.show("squid.service", "MainPID") == pid
    # Killed, because stopped it waits for half a minute, for clients that are not there.
    machine.as_root("systemctl kill --signal=KILL squid.service; systemctl stop squid.service")
    machine.as_root("systemctl start squid.service")
    assert machine.as_root(STATE).out == "active\n"
    assert "*:3128" in machine.as_root(LISTENS).out


def test_squid_that_something_else_brought_stays_on(boot: Callable[..., Machine]) -> None:
    """To apt nobody has asked for it, and so it is with what came along with us."""
    machine = boot(package=False)
    machine.as_root("apt-mark auto squid squid-openssl || apt-mark auto squid-openssl")
    machine.write(DROP_IN, IN_FIVE_S)
    machine.as_root("systemctl daemon-reload; systemctl enable --now squid.service")
    machine.as_root("apt-get install -y /root/mcpwrap.deb")
    assert machine.as_root(STATE).out == "active\n"
    machine.as_root("test ! -e /var/lib/mcpwrap/stock-squid-stays-off")
    machine.as_root("systemctl kill --signal=KILL squid.service")  # or the end takes half a minute
