"""Cache of packages: read-only to runs, of one server, bounded, and whole after a crash."""

import re
from collections.abc import Iterator

import pytest

from tests.shared import pace
from tests.system.bed import internet_map
from tests.system.bed.internet import Internet
from tests.system.bed.machine import Machine
from tests.system.execution import package_machine
from tests.system.execution.package_machine import (
    CACHES,
    FUNCTIONS,
    ask,
    await_download,
    await_progress,
    downloaded,
    empty_cache,
    names_in,
    python_session,
    result_of,
)
from tests.system.support.python_servers import RunResult, run_all, run_python
from tests.system.support.tiers import only_in_test_all

STAGE = package_machine.booted
pytestmark = only_in_test_all("the fast tier has the story of a second run without a network")


@pytest.fixture
def machine(machine: Machine) -> Iterator[Machine]:
    """Lend the machine, and leave nothing of its servers' packages to the next story."""
    yield machine
    for server in ("python", "small"):
        empty_cache(machine, server)


def test_a_run_reads_packages_and_changes_none(machine: Machine) -> None:
    code = FUNCTIONS + "change_all(own_packages()), tried(os.mkdir, '/packages/new')"
    packages, twin = run_all(
        machine,
        [
            {"code": code, "packages": ["bed-base"]},
            {"code": FUNCTIONS + "change_all(twin())"},
        ],
    )
    # The first one is refused by the file's mode, before the kernel looks at the mount.
    assert packages.value == str((["EACCES", *["EROFS"] * 6], "EROFS"))
    assert twin.value == str(["done"] * 7)


PLACES = ("/packages", "/packages/environments", "/var/cache", f"{CACHES}/python", "/var/lib")
SEEN = f"{FUNCTIONS}\nentries_seen(*{PLACES})"


def test_a_run_sees_packages_of_its_own_server_alone(machine: Machine) -> None:
    """Nor does an account of a person, nor another server."""
    denied, gone = "Permission denied", "No such file or directory"
    nothing = [gone] * 3
    of_python = [run_python(machine, SEEN, packages=[name]) for name in ("bed-base", "bed-many")]
    assert of_python[-1].value == str([denied, 2, *nothing])
    assert run_python(machine, SEEN, server="small", packages=["bed-base"]).value == str(
        [denied, 1, *nothing]
    )
    assert run_python(machine, SEEN, server="plain").value == str([denied, 0, *nothing])
    look = f"ls {CACHES}/python/environments"
    machine.as_user("alice", look, status=2)
    assert len(machine.as_root(look).out.split()) == 2  # the twin


def test_root_may_remove_the_cache(machine: Machine) -> None:
    """As the page of E-PACKAGE-CACHE says; a run slot that waits has the old folder."""

    def called() -> RunResult:
        return run_python(machine, "import bed_base", packages=["bed-base"])

    assert not called().is_error
    machine.await_end_of("python")
    machine.as_root(f"rm -rf {CACHES}/python/*")
    assert not called().is_error


IMPORT_LARGE = "import bed_large"
FOREVER = f"{IMPORT_LARGE}\nimport threading\nthreading.Event().wait()"


def environments(machine: Machine) -> dict[str, str]:
    """Return the name of each environment of the small server, by its one package."""
    found = machine.look(f"find {CACHES}/small/environments -name '*.dist-info' -printf '%P\\n'")
    names = re.findall(r"^(\w+)/(.*)\.dist-info$", found, re.MULTILINE)
    return {package: name for name, package in names}


def test_a_full_cache_loses_what_was_not_used_for_longest(machine: Machine) -> None:
    """It has room for one of the two large packages; one that is too large is never there."""
    one, two = "bed-large==1.0.0", "bed-large==2.0.0"
    order = [("import bed_base", "bed-base"), (IMPORT_LARGE, one), ("import bed_base", "bed-base")]
    calls = [{"code": code, "packages": [package]} for code, package in order]
    assert not any(result.is_error for result in run_all(machine, calls, server="small"))
    assert set(environments(machine)) == {"bed_base-2.0.0", "bed_large-1.0.0"}
    assert not run_python(machine, IMPORT_LARGE, server="small", packages=[two]).is_error
    assert set(environments(machine)) == {"bed_base-2.0.0", "bed_large-2.0.0"}
    larger = run_python(machine, "1", server="small", packages=["bed-larger"])
    assert "the packages take more than 16 MiB [E-PACKAGE-TOO-LARGE]" in larger.text
    assert names_in(machine, "small", "builds") == []
    assert set(environments(machine)) == {"bed_base-2.0.0", "bed_large-2.0.0"}
    # uv's own cache has half of that bound: it is removed, too.
    assert int(machine.look(f"du -sm {CACHES}/small").split()[0]) < 32


def test_packages_that_a_run_uses_are_not_evicted(machine: Machine) -> None:
    with python_session(machine, "small") as session:
        ask(session, FOREVER, "bed-large==1.0.0")
        pace.until(lambda: "bed_large-1.0.0" in environments(machine))
        other = run_python(machine, IMPORT_LARGE, server="small", packages=["bed-large==2.0.0"])
        assert not other.is_error
        assert set(environments(machine)) == {"bed_large-1.0.0", "bed_large-2.0.0"}
    machine.await_end_of("small")
    assert not run_python(machine, "1", server="small", packages=["bed-base"]).is_error
    assert set(environments(machine)) == {"bed_base-2.0.0", "bed_large-2.0.0"}  # the twin


def release(machine: Machine, version: str) -> None:
    """Download a held file as root, which lets the first download of it go on."""
    url = f"https://{internet_map.PYPI}/files/bed_held-{version}-py3-none-any.whl"
    machine.as_root(f"python3 -c \"import urllib.request; urllib.request.urlopen('{url}').read()\"")


def test_two_sessions_install_the_same_packages_once(machine: Machine, internet: Internet) -> None:
    with python_session(machine) as one, python_session(machine) as two:
        first = ask(one, "import bed_held", "bed-held==1")
        await_download(internet)
        second = ask(two, "import bed_held", "bed-held==1")
        await_progress(two, "installing 1 packages")
        assert len(names_in(machine, "python", "builds")) == 1
        release(machine, "1")
        for session, call in ((one, first), (two, second)):
            result = result_of(session, call)
            assert (result.exit_code, result.stderr) == (0, "")
    by_root = 1
    assert len(downloaded(internet)) - by_root == 1


@pytest.mark.parametrize("victim", ["uv", "server", "session"])
def test_killed_in_the_middle_of_a_download_it_starts_again(
    machine: Machine, internet: Internet, victim: str
) -> None:
    """No process is left, and what is half there is removed."""
    package = f"bed-held=={['uv', 'server', 'session'].index(victim) + 2}"
    with python_session(machine) as session:
        call = ask(session, "import bed_held", package)
        await_download(internet)
        if victim == "uv":
            machine.look("pkill -KILL -u mcpw-python -x uv")
            text = result_of(session, call).text
            assert "uv was ended by signal 9 [E-PACKAGE-KILLED]" in text
            assert text.endswith("the code was not executed")
        elif victim == "server":
            machine.look("pkill -KILL -u mcpw-python -f mcpwrap-python")
            assert "error" in session.answer_to(call)  # of the gate
    machine.await_end_of("python")
    assert names_in(machine, "python", "environments") == []
    again = run_python(machine, "import bed_held", packages=[package])
    assert (again.exit_code, again.stderr) == (0, "")
    assert names_in(machine, "python", "builds") == []


def test_uv_is_confined_as_the_server_is_and_has_no_token(
    machine: Machine, internet: Internet
) -> None:
    with python_session(machine) as session:
        call = ask(session, "1", "bed-held==5")
        await_download(internet)
        [uv] = machine.look("pgrep -u mcpw-python -x uv").split()
        programs = machine.look("ps -o comm= -u mcpw-python").split()
        assert set(programs) <= {"uv", "mcpwrap-python", "python3", "mcpwrap-wrapper"}
        status = machine.look(f"cat /proc/{uv}/status")
        for line in ("NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"):
            assert line in status
        variables = machine.look(f"tr '\\0' '\\n' < /proc/{uv}/environ").splitlines()
        names = {variable.partition("=")[0] for variable in variables}
        assert names == {
            "HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "SSL_CERT_FILE",
            "UV_DEFAULT_INDEX", "UV_CACHE_DIR", "UV_HTTP_RETRIES", "PATH", "LC_ALL", "HOME",
            "TMPDIR",
        }  # fmt: skip
        release(machine, "5")
        assert result_of(session, call).value == "1"
