"""Policy module of SELinux and profile of AppArmor, read by the tools of a Debian that has both.

No kernel of the bed enforces either of them: what they do there is not shown here.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpwrap.as_agent.run.sandbox import userns_profile
from mcpwrap.core import names
from mcpwrap.core.wire import approval_socket, listener_file
from mcpwrap.core.wire.execution import worker_file
from mcpwrap.machine.prerequisites import labels
from tests.system.bed import roots
from tests.system.support.tiers import only_in_test_all

pytestmark = only_in_test_all("a root of its own, whose policy takes a minute to link")

TOP = Path(__file__).parents[3]
STORE = "/etc/selinux/default"
POLICY = f"$(echo {STORE}/policy/policy.*)"
CONTEXTS = f"{STORE}/contexts/files/file_contexts"
Inside = Callable[[str], str]
# Path, its type without the module, and with it.
LABELS = [
    ("/usr/bin/mcpwrap", "bin_t", "bin_t"),
    ("/usr/bin/mcpwrap-connect", "bin_t", "bin_t"),
    ("/usr/libexec/mcpwrap/mcpwrap-wrapper", "bin_t", "bin_t"),
    ("/usr/libexec/mcpwrap/mcpwrap-root", "bin_t", "bin_t"),
    ("/usr/libexec/mcpwrap/mcpwrap-squid", "bin_t", "squid_exec_t"),  # PID 1 starts Squid by it
    ("/usr/lib/mcpwrap/mcpwrap/errors.py", "lib_t", "lib_t"),
    ("/usr/lib/mcpwrap/squid/common.conf", "lib_t", "squid_conf_t"),
    ("/var/lib/mcpwrap/squid/proxy-1.conf", "var_lib_t", "squid_conf_t"),
    ("/var/lib/mcpwrap/squid/errors/ERR_ACCESS_DENIED", "var_lib_t", "squid_conf_t"),
    ("/var/lib/mcpwrap/ca/git/ca.pem", "var_lib_t", "squid_conf_t"),
    ("/var/lib/mcpwrap/gate.json", "var_lib_t", "var_lib_t"),  # not for Squid
    ("/var/lib/mcpwrap/sealed/git/TOKEN.sealed", "var_lib_t", "var_lib_t"),
    ("/var/log/mcpwrap/proxy/access.log", "var_log_t", "squid_log_t"),
    ("/var/log/mcpwrap/intercept/access.log", "var_log_t", "squid_log_t"),
    ("/var/log/mcpwrap/audit/1.jsonl", "var_log_t", "var_log_t"),
    ("/run/mcpwrap-intercept-2/certificates/index.txt", "none", "squid_cache_t"),
    ("/run/mcpwrap/gate.sock", "none", "none"),
    ("/etc/mcpwrap/config.toml", "etc_t", "etc_t"),
]


@pytest.fixture(scope="module")
def inside() -> Iterator[Inside]:
    """Lend a root with the tools; commands get `packaging/` in /src, and return their output."""
    layer = roots.ensure(roots.lsm_root("trixie"))
    with tempfile.TemporaryDirectory(dir=roots.CACHE, prefix="lsm-") as scratch:
        upper, work = Path(scratch, "upper"), Path(scratch, "work")
        upper.mkdir()
        work.mkdir()
        with roots.mounted_overlay(layer.lower_dirs(), upper, work) as root:
            for folder in ("selinux", "apparmor"):
                shutil.copytree(TOP / "packaging" / folder, root / "src" / folder)

            def run(command: str) -> str:
                script, log = Path(scratch, "script"), Path(scratch, "log")
                script.write_text(command)
                with log.open("wb") as out:
                    argv = ["sh", "-es"]
                    try:
                        roots.run_in_root(root, argv, script=script, inputs=[], log_fd=out.fileno())
                    except subprocess.CalledProcessError as error:
                        raise AssertionError(log.read_text()) from error
                return log.read_text()

            yield run


@pytest.fixture(scope="module")
def without_module(inside: Inside) -> dict[str, str]:
    """Return the type of each path in Debian's own policy."""
    return types(inside)


@pytest.fixture(scope="module")
def linked(inside: Inside, without_module: dict[str, str]) -> Inside:
    """Lend the root with the module and its ports in the policy."""
    assert without_module
    inside("cd /src/selinux && make && semodule -n -s default -i mcpwrap.pp")
    inside("semanage import -S default -N < /src/selinux/ports")
    return inside


def types(inside: Inside) -> dict[str, str]:
    """Return the type that restorecon would give each path of the table."""
    paths = [path for path, _, _ in LABELS]
    lookup = f"selabel_lookup -b file -f {CONTEXTS} -k $p -t file || echo Default context: u:r:none"
    look = f"for p in {' '.join(paths)}; do {lookup}; done"
    found = re.findall(r"Default context: \w+:\w+:(\w+)", inside(look))
    return dict(zip(paths, found, strict=True))


def test_the_module_is_built_the_same_each_time(inside: Inside) -> None:
    inside(
        "for d in /tmp/first /var/tmp/a/second; do"
        " mkdir -p $d; cp -r /src/selinux/. $d; make -C $d; touch -d tomorrow $d/*; done;"
        " cmp /tmp/first/mcpwrap.pp /var/tmp/a/second/mcpwrap.pp"
    )
    with pytest.raises(AssertionError, match="differ"):
        inside(
            "mkdir /tmp/third; cp -r /src/selinux/. /tmp/third; cd /tmp/third;"
            " sed -i 's/1.0.0/1.0.1/' mcpwrap.te; make; cmp /tmp/first/mcpwrap.pp mcpwrap.pp"
        )


# Types that a policy must have, or the module is not loaded. Fedora's and RHEL's have each of them,
# too: https://github.com/fedora-selinux/selinux-policy.
REQUIRED = {
    "bin_t", "http_cache_port_t", "init_t", "port_type", "squid_port_t", "squid_t", "usr_t",
    "var_lib_t", "var_log_t", "var_t",
}  # fmt: skip


def test_the_module_needs_only_what_each_policy_has(inside: Inside) -> None:
    """The type of systemd's socket is not the same, so that it is in optional blocks."""
    cil = inside("cd /src/selinux && make && /usr/libexec/selinux/hll/pp mcpwrap.pp")
    needed = re.compile(r"\(typeattributeset cil_gen_require (\w+)\)")
    always, *optional = cil.split("\n(optional ")
    assert set(needed.findall(always)) == REQUIRED
    assert {"init_runtime_t", "init_var_run_t"} < set(needed.findall("".join(optional)))


def test_each_file_has_the_label_that_its_readers_need(
    without_module: dict[str, str], linked: Inside
) -> None:
    assert without_module == {path: before for path, before, _ in LABELS}
    assert types(linked) == {path: after for path, _, after in LABELS}


def test_squid_keeps_its_domain_and_reads_what_is_labelled_for_it(linked: Inside) -> None:
    """PID 1 enters Squid's domain by the launcher, in spite of NoNewPrivileges=."""
    query = f"sesearch {{}} {POLICY}"
    enters = linked(query.format("-T -s init_t -t squid_exec_t -c process"))
    assert "type_transition init_t squid_exec_t:process squid_t;" in enters
    assert "nnp_transition" in linked(query.format("-A -s init_t -t squid_t -c process2"))
    for type_, rights in (
        ("squid_conf_t:file", "open read"),
        ("squid_log_t:file", "append"),
        ("squid_cache_t:file", "create write"),
        ("bin_t:file", "execute"),
        ("var_lib_t:dir", "search"),
    ):
        target, kind = type_.split(":")
        allowed = linked(query.format(f"-A -s squid_t -t {target} -c {kind}"))
        granted = set(re.findall(r"\w+", allowed))
        assert set(rights.split()) <= granted, allowed
    for target in ("var_lib_t", "etc_t"):  # what the gate reads, and secrets
        read = linked(query.format(f"-A -s squid_t -t {target} -c file -p write -ds"))
        assert "allow" not in read


def test_the_commands_of_a_refusal_give_a_program_its_type(linked: Inside) -> None:
    path = "/opt/a b/x.py"
    look = f"selabel_lookup -b file -f {CONTEXTS} -k '{path}' -t file"
    assert "usr_t" in linked(look)
    assert labels.refused_type("system_u:object_r:usr_t:s0")
    found = re.search(r"`sudo semanage fcontext ([^`]*)`", labels.fix_of(path))
    assert found
    linked(f"semanage fcontext -S default -N {found[1]}")
    assert ":bin_t:" in linked(look)


def test_ports_are_those_that_units_listen_at(linked: Inside) -> None:
    used = {listener_file.PORT, worker_file.PORT, page_port()}
    lines = (TOP / "packaging/selinux/ports").read_text().splitlines()
    assert {int(line.split()[-1]) for line in lines} == used
    for port in used:
        assert f"tcp {port} system_u:object_r:mcpwrap_port_t" in portcon(linked, port)
    # The policy has a type for this one already, which cannot be defined again.
    assert "http_cache_port_t" in portcon(linked, names.EGRESS_PORT)
    query = f"sesearch -A -s squid_t -t mcpwrap_port_t -c tcp_socket {POLICY}"
    assert all("squid_connect_any" in line for line in linked(query).splitlines() if line)


def test_the_module_can_go_once_no_port_has_its_type(linked: Inside) -> None:
    """As `rpm -e` has it go."""
    removed = "semodule -n -s default -r mcpwrap"
    with pytest.raises(AssertionError, match="mcpwrap_port_t"):
        linked(removed)
    spec = (TOP / "packaging/rpm/mcpwrap.spec").read_text()
    found = re.search(r"semanage port -E \| (sed .*) \| semanage import", spec)
    assert found
    linked(f"semanage port -S default -E | {found[1]} | semanage import -S default -N; {removed}")
    linked("semodule -n -s default -i /src/selinux/mcpwrap.pp")
    linked("semanage import -S default -N < /src/selinux/ports")


def portcon(inside: Inside, port: int) -> str:
    return inside(f"seinfo --portcon {port} {POLICY}")


def page_port() -> int:
    found = re.search(r":(\d+)/", approval_socket.PAGE_URL)
    assert found
    return int(found[1])


@pytest.mark.parametrize(
    "program",
    [
        "mcpwrap-run",
        "mcpwrap-wrapper",
        "/usr/bin/mcpwrap",
        "/home/alice/venv/bin/mcpwrap",
        "/home/a b/{x}*/mcpwrap",
    ],
)
def test_the_profile_that_is_shipped_or_printed_is_valid(inside: Inside, program: str) -> None:
    """Its name is the path that it is attached to, and no pattern."""
    is_printed = program.startswith("/")
    file = "/tmp/profile" if is_printed else f"/src/apparmor/{program}"
    if is_printed:
        text = "\n".join(userns_profile.profile(program))
        inside(f"cat > {file} << 'END'\n{text}\nEND")
    built = inside(f"apparmor_parser -Q -K -d {file}; apparmor_parser -N {file}")
    assert "Mode: unconfined" in built
    assert "userns," in built
    name = built.splitlines()[-1]
    assert name.replace("\\", "") == program
    with pytest.raises(AssertionError, match="syntax error"):
        inside(f"sed 's/userns,/users,/' {file} > /tmp/wrong; apparmor_parser -Q -K /tmp/wrong")
