"""The package of arm64, on an emulated machine: programs alone, emulated, have no seccomp(2)."""

import errno

import pytest

from tests.system.bed import package
from tests.system.bed.vm import Files, call_in_arm64_vm
from tests.system.guest.arm64_story import PACKAGE
from tests.system.support.servers import a_server
from tests.system.support.tiers import only_in_test_all
from tests.system.vm.vm_results import complaints, seen_by

WITHIN_S = 600
ROOT_S = 1800  # of which one, a week, is for the root: each of its programs is emulated


@pytest.mark.timeout(WITHIN_S + ROOT_S)
@only_in_test_all("an emulated machine, of which no instruction is one of the host's")
def test_on_arm64_the_package_is_installed_and_a_session_is_held() -> None:
    deb = package.build_for(package.Target("deb13", "arm64"))
    config = a_server("probe", 'agents = ["alice"]')
    files: Files = {PACKAGE: deb.read_bytes(), "/etc/mcpwrap/config.toml": config}
    result = call_in_arm64_vm("trixie", ("arm64_story", "play"), files, WITHIN_S)
    seen = seen_by(result)
    print(*(f"{name}: {found}" for name, found in seen.items()), sep="\n")
    assert seen["architecture"] == ["aarch64", "arm64"]
    assert seen["server"] == ["aarch64", "1", "2"]
    assert (seen["refused"], seen["permitted"]) == (f"OSError {errno.EAFNOSUPPORT}", 2)
    assert (seen["end"], seen["nothing to do"]) == ([0, ""], "nothing to do\n")
    assert seen["failed units"] == ""
    assert complaints(result) == []
