"""Packages of runs: resolved and installed under the server's account, which executes none."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.system.bed import internet_map, roots
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.execution import package_machine
from tests.system.execution.package_machine import (
    CACHES,
    FUNCTIONS,
    PIP_CONF,
    SERVERS,
    UV_PROGRAM,
    downloaded,
    empty_cache,
    publish_in_folder,
    tool_of,
    unplugged,
)
from tests.system.support.python_servers import run_all, run_python
from tests.system.support.tiers import only_in_test_all

STAGE = package_machine.booted
EVIL = "evil.test"
OTHER = internet_map.NPM
WHEELS = "/srv/wheels"
# What `[tool]` says is uv's business, and uv never gets the script.
METADATA = f"""\
# /// script
# requires-python = ">=3.9"
# dependencies = ["bed-needs"]
#
# [tool.uv]
# index-url = "https://{EVIL}/simple/"
# [tool.uv.sources]
# bed-needs = {{ url = "https://{EVIL}/files/bed_needs-1.0.0-py3-none-any.whl" }}
# ///
"""
SCRIPT = f"{METADATA}import bed_needs\nbed_needs.answer()"
ANSWER = "'42 by bed-base 1.0.0'"  # the older one of two, as its requirement says
OF_NEEDS = ["bed_base-1.0.0-py3-none-any.whl", "bed_needs-1.0.0-py3-none-any.whl"]
NOT_EXECUTED = "; the code was not executed"


@pytest.fixture
def machine(machine: Machine) -> Iterator[Machine]:
    """Lend the machine, and leave nothing of its server's packages to the next story."""
    yield machine
    empty_cache(machine, "python")


def test_a_script_gets_its_packages_and_the_second_time_without_a_network(
    machine: Machine, internet: Internet
) -> None:
    assert run_python(machine, SCRIPT).value == ANSWER
    assert set(downloaded(internet)) == set(OF_NEEDS)
    assert internet.hosts() == {internet_map.PYPI}
    internet.unplug()
    try:
        assert run_python(machine, SCRIPT).value == ANSWER
    finally:
        internet.plug()


@only_in_test_all("takes longer: Squid resolves names again a moment after the network is back")
def test_without_a_network_what_is_not_there_yet_is_an_error(
    machine: Machine, internet: Internet
) -> None:
    calls = [{"code": "1", "packages": [package]} for package in ("bed-base", "bed-needs")]
    assert run_python(machine, "1", packages=["bed-base"]).value == "1"
    with unplugged(machine, internet):
        there, other = run_all(machine, calls)
        assert there.value == "1"
        assert "the package index cannot be reached [E-PACKAGE-NETWORK]" in other.text
        assert other.text.endswith(NOT_EXECUTED)
    assert run_python(machine, "1", packages=["bed-needs"]).value == "1"  # the twin


REFUSED = {
    "bed-source": "bed-source has no wheel: it is published as source only, and runs install "
    "wheels only [E-PACKAGE-SOURCE-ONLY]",
    "bed-yanked==2.0.0": "bed-yanked: its author has yanked this version from the index "
    "[E-PACKAGE-YANKED]",
    "bed-wrong-hash": "bed-wrong-hash: the file has not the hash that the index states; it was not "
    "installed [E-PACKAGE-HASH]",
    "bed-elsewhere": "bed-elsewhere has no wheel for this Python version and platform "
    "[E-PACKAGE-PLATFORM]",
    "bed-nothing": "bed-nothing is not in the package index [E-PACKAGE-UNKNOWN]",
    "bed-base>=9": "the index has no such version of bed-base [E-PACKAGE-VERSION]",
    "bed-future": "bed-future does not support the Python version of the runs [E-PACKAGE-PYTHON]",
    "bed-url": "a package requires bed-base from a URL; runs install from the index only "
    "[E-PACKAGE-METADATA]",
}


@only_in_test_all("the unit tests have uv's messages; here, that this uv still writes them")
def test_a_package_that_cannot_be_had_is_named_with_the_reason(machine: Machine) -> None:
    """The twin: of the package with a yanked version, there is an older one."""
    code = "import bed_yanked\nbed_yanked.VERSION"
    calls = [{"code": code, "packages": [package]} for package in (*REFUSED, "bed-yanked")]
    *refused, older = run_all(machine, calls)
    for result, text in zip(refused, REFUSED.values(), strict=True):
        assert result.is_error
        assert result.text.startswith(text)
        assert result.text.endswith(NOT_EXECUTED)
    assert older.value == "'1.0.0'"


@only_in_test_all("rows of a parser's table, which the unit tests have: here, that it comes first")
def test_what_is_no_requirement_is_refused_before_uv_starts(
    machine: Machine, internet: Internet
) -> None:
    written = [
        f"bed-base @ https://{EVIL}/bed_base-1.0.0-py3-none-any.whl",
        "-r /etc/machine-id",
        f"--index-url=https://{EVIL}/simple/",
        "./bed_base-1.0.0-py3-none-any.whl",
        "/etc/passwd",
        "bed-base # comment",
        "${WORKER_RPC_TOKEN}",
        "bed-base\nbed-needs",
    ]
    as_script = [f"# /// script\n# dependencies = [{json.dumps(w)}]\n# ///" for w in written]
    calls: list[dict[str, Any]] = [{"code": "1", "packages": [each]} for each in written]
    content = machine.read("/etc/machine-id").strip()
    for result in run_all(machine, calls + [{"code": code} for code in as_script]):
        assert result.is_error
        assert "[E-PACKAGE-REQUIREMENT]" in result.text
        assert content not in result.text
    assert internet.connections() == []
    [accepted] = run_all(machine, [{"code": "1", "packages": ["bed-base"]}])  # the twin
    assert accepted.value == "1"


@only_in_test_all("the script of the first story has the same by another argument")
def test_configured_packages_are_in_each_run(machine: Machine) -> None:
    python = roots.PYTHON[machine.suite]
    assert f"Python {python}" in tool_of(machine, "ready")["description"]
    use = "import bed_needs\nbed_needs.answer()"
    calls: list[dict[str, Any]] = [
        {"code": use},
        {"code": f"import bed_many.m7\n{use}, bed_many.m7.number()", "packages": ["bed-many"]},
        {"code": use, "packages": ["bed-base>=2"]},  # one that they contradict
        {"code": f"# /// script\n# requires-python = '>=3.99'\n# ///\n{use}"},
    ]
    plain, more, conflict, future = run_all(machine, calls, server="ready")
    assert plain.value == ANSWER
    assert more.value == f"({ANSWER}, 7)"
    assert "the requirements contradict each other [E-PACKAGE-CONFLICT]" in conflict.text
    assert "all versions of bed-needs depend on bed-base<2" in conflict.text
    assert "the script requires Python >=3.99, and runs have Python 3" in future.text
    described = tool_of(machine, "ready")["description"]
    assert "bed-base 1.0.0, bed-needs 1.0.0" in described


# ------------------------------------------------------------------------------ nothing is executed
def trapped(machine: Machine) -> set[str]:
    """Return the names that a package left which was executed, with the accounts."""
    places = f"{CACHES} /run/mcpwrap /tmp /var/tmp"
    found = machine.look(f"find {places} -name 'trapped-*' -printf '%f %u\\n'")
    machine.look(f"find {places} -name 'trapped-*' -delete")
    return set(found.splitlines())


TRAPPED = "import glob, os\nprint(sorted(map(os.path.basename, glob.glob('/tmp/trapped*'))))"


def test_the_servers_account_executes_nothing_of_a_package(machine: Machine) -> None:
    """Neither a .pth file nor sitecustomize, nor a build backend; in a run both of them are."""
    of_site = "import os, site\nsite.addsitedir(os.environ['PYTHONPATH'])\n"
    calls = [{"code": code, "packages": ["bed-trap"]} for code in (TRAPPED, of_site + TRAPPED)]
    plain, site, source = run_all(machine, [*calls, {"code": "1", "packages": ["bed-source"]}])
    assert plain.stdout == "['trapped-sitecustomize']\n"
    assert site.stdout == "['trapped-pth', 'trapped-sitecustomize']\n"
    assert source.is_error
    assert trapped(machine) == set()
    # The twins: the same files, used by that account as a virtual environment is.
    folder = f"{CACHES}/python/environments/*"
    wear = "setpriv --reuid mcpw-python --regid mcpw-python --clear-groups"
    add = f"import glob, site; site.addsitedir(glob.glob('{folder}')[0])"
    machine.as_root(f'{wear} python3 -c "{add}"')
    machine.as_root(f"PYTHONPATH=$(echo {folder}) {wear} python3 -c pass")
    assert {"trapped-pth mcpw-python", "trapped-sitecustomize mcpw-python"} <= trapped(machine)


@only_in_test_all("mutation twin: shows that the option of uv is what refuses")
def test_without_wheels_only_a_package_is_built_by_its_own_code(machine: Machine) -> None:
    """The hashes have no such twin: uv compares those of the index, whatever its options are."""
    with machine.patched(UV_PROGRAM, '"--only-binary=:all:", ', ""):
        run_python(machine, "1", packages=["bed-source"])
        assert "trapped-build mcpw-python" in trapped(machine)


@only_in_test_all("what uv itself refuses: a wheel's own paths and links")
def test_a_wheel_writes_nowhere_but_into_its_folder(machine: Machine) -> None:
    """Its files are plain ones, whatever they are in the archive."""
    shadow = "(own_packages() / 'bed_linking/shadow').read_text(), has_links()"
    climbing, linking = run_all(
        machine,
        [
            {"code": "1", "packages": ["bed-climbing"]},
            {"code": FUNCTIONS + shadow, "packages": ["bed-linking"]},
        ],
    )
    assert climbing.value == "1"
    assert machine.look("find / -xdev -name 'climbed*' -not -path '/proc/*'") == ""
    assert linking.value == "('/etc/shadow', False)"


# ------------------------------------------------------------------------------ network
@only_in_test_all("egress by Squid has stories of its own; here, that uv has no other way")
def test_the_server_reaches_its_index_and_no_other_host(
    machine: Machine, internet: Internet
) -> None:
    """The index may name a file of another host."""
    stray = run_python(machine, "1", packages=["bed-stray"])
    assert "the package index cannot be reached [E-PACKAGE-NETWORK]" in stray.text
    assert f"https://{OTHER}/files/bed_stray-1.0.0-py3-none-any.whl" in stray.text
    assert internet.hosts() == {internet_map.PYPI}
    assert {query.name for query in internet.queries()} <= {internet_map.PYPI}
    rows = json.loads(machine.as_root("mcpwrap egress python --json").out)
    assert {(row["destination"], row["is_refused"]) for row in rows} == {
        (f"{internet_map.PYPI}:443", False),
        (f"{OTHER}:443", True),
    }
    machine.configure(SERVERS.replace('egress = ["@pypi"]', f'egress = ["@pypi", "{OTHER}"]', 1))
    machine.apply()
    assert run_python(machine, "1", packages=["bed-stray"]).value == "1"  # the twin
    machine.configure(SERVERS)
    machine.apply()


@only_in_test_all("the same answer of a server without egress, and of one without uv")
def test_without_an_index_or_uv_there_is_the_standard_library(machine: Machine) -> None:
    """And the tool says so, to the model that would name a package."""

    def answers(server: str) -> tuple[bool, bool, str]:
        tool = tool_of(machine, server)
        calls: list[dict[str, Any]] = [
            {"code": "import json\njson.dumps(1)"},
            {"code": "1", "packages": ["bed-base"]},
        ]
        usual, more = run_all(machine, calls, server=server)
        assert usual.value == "'1'"
        can_add = "No other packages can be added" not in tool["description"]
        has_argument = "packages" in tool["inputSchema"]["properties"]
        return can_add, has_argument, more.text if more.is_error else more.value

    refusal = (
        "bed-base is not installed, and runs of this server cannot add packages "
        "[E-PACKAGE-NOT-INSTALLED]\nleave the requirement out, and use what the tool's description "
        f"lists{NOT_EXECUTED}"
    )
    assert answers("plain") == (False, False, refusal)
    assert answers("python") == (True, True, "1")
    machine.as_root("mv /usr/local/bin/uv /root/uv")
    try:
        assert answers("python") == (False, False, refusal)
        machine.announce("mcpwrap@ready.service: .*configured packages")
        configured = run_python(machine, "1", server="ready")
        assert "uv is not on this machine [E-PACKAGE-NO-UV]" in configured.text
    finally:
        machine.as_root("mv /root/uv /usr/local/bin/uv")


@only_in_test_all("the same script, a day later")
def test_a_day_later_versions_are_looked_up_anew_and_without_an_index_the_last_are_used(
    machine: Machine, internet: Internet
) -> None:
    def age() -> None:
        edit = 's/"at_s":[0-9.]*/"at_s":1000000000.0/'
        machine.as_root(f"sed -i '{edit}' {CACHES}/python/resolutions/*.json")

    assert run_python(machine, SCRIPT).value == ANSWER
    internet.forget()
    assert run_python(machine, SCRIPT).value == ANSWER
    assert internet.requests() == []
    age()
    assert run_python(machine, SCRIPT).value == ANSWER
    assert "/simple/bed-needs/" in {request.path for request in internet.requests()}
    age()
    with unplugged(machine, internet):
        assert run_python(machine, SCRIPT).value == ANSWER


@only_in_test_all("the setting decides in `apply`, and its unit tests have the table")
def test_packages_come_from_a_folder_of_wheels(machine: Machine, internet: Internet) -> None:
    """Of a machine that downloads from nowhere: `@pypi` is this folder, and no host."""
    publish_in_folder(machine, WHEELS, {"bed-base", "bed-needs", "bed-source"})
    machine.write("/etc/pip.conf", f"[global]\nno-index = true\nfind-links = {WHEELS}\n")
    try:
        machine.apply()
        names = ("bed-source", "bed-many")
        missing = [{"code": "1", "packages": [name]} for name in names]
        found, source, unknown = run_all(machine, [{"code": SCRIPT}, *missing])
        assert found.value == ANSWER
        assert "[E-PACKAGE-SOURCE-ONLY]" in source.text
        assert "bed-many is not in the package index [E-PACKAGE-UNKNOWN]" in unknown.text
        assert internet.connections() == []
        assert internet.queries() == []
    finally:
        machine.write("/etc/pip.conf", PIP_CONF)
        machine.apply()
    assert run_python(machine, "1", packages=["bed-many"]).value == "1"  # the twin


# ------------------------------------------------------------------------------ time
@only_in_test_all("saves a run time; refuses nothing")
def test_a_run_compiles_no_module_of_a_package(machine: Machine) -> None:
    """Also where one of its files is not valid Python, which the compiler skips."""
    compiled = "compiled_by('bed_many.m', 40)"
    result = run_python(machine, f"{FUNCTIONS}\n{compiled}", packages=["bed-many"])
    assert result.value == "['/tmp/own.py']"
    with machine.patched(UV_PROGRAM, "self._compile(target, folder, on_tick)", "pass"):
        empty_cache(machine, "python")
        without = run_python(machine, f"{FUNCTIONS}\nlen({compiled})", packages=["bed-many"])
        assert without.value == "42"  # with the package itself, and the run's own module
