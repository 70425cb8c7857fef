"""Output of `make packages` and `make repository`, read by sha256sum, gpg, apt and dnf."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from referencing import Registry, Resource

from tests.system.bed import installed, package
from tests.system.bed.machine import Machine
from tests.system.packages import built
from tests.system.support.tiers import on_release, only_in_test_all
from tests.system.tools import packages, repository

TARGETS = [package.Target(name, package.native_arch()) for name in ("deb12", "deb13")]
SCHEMAS = files("cyclonedx.schema") / "_res"
NAME = r"^([a-z0-9.-]+)(?:\[[a-z,]+\])?"
PIN = re.compile(NAME + r"==(\S+) \\\n((?:    --hash=\S+(?: \\)?\n)+)", re.MULTILINE)
SERVED_AT = "file:///srv/repository"
# Without Debian's plugin, which keeps each package in a repository of this machine.
DNF = "dnf5 -y --disable-plugin='*' install mcpwrap"


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return a key in a keyring of its own, which the test uses as a builder uses theirs."""
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    person = "Builder <builder@packages.test>"
    argv = ["gpg", "--batch", "--passphrase", "", "--quick-generate-key", person]
    subprocess.run(argv, capture_output=True, check=True)
    yield person
    subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=True)


def test_sums_and_signature_are_of_the_files(key: str, tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    packages.write(dist, TARGETS, key)
    names = {path.name for path in dist.iterdir()}
    debs = {name for name in names if name.endswith(".deb")}
    assert len(debs) == 2
    assert names == {*debs, *(f"{deb}.cdx.json" for deb in debs), "SHA256SUMS", "SHA256SUMS.asc"}
    assert checked(dist) == (0, 0)
    # The twin: one byte more in a package, or one file less in the list.
    deb = dist / min(debs)
    deb.write_bytes(deb.read_bytes() + b"\0")
    assert checked(dist) == (1, 0)
    sums = dist / "SHA256SUMS"
    sums.write_text("".join(sums.read_text().splitlines(keepends=True)[1:]))
    assert checked(dist)[1] == 1


def test_what_cannot_be_signed_is_not_built(
    key: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package, "commit_of_tree", lambda: "1234abcd")
    packages.expect_signable(key)  # the twin
    to = str(tmp_path / "to")

    def expect_refused(by: str, said: str) -> None:
        assert packages.main(["--key", by, "--dist", to, "deb13"]) == 1
        assert said in capfd.readouterr().err
        assert repository.main(["--key", by, "--url", SERVED_AT, "--to", to, "deb13"]) == 1
        assert said in capfd.readouterr().err

    expect_refused("other@packages.test", "has no secret key other@packages.test")
    monkeypatch.setattr(package, "commit_of_tree", lambda: "1234abcd-modified")
    expect_refused(key, "changes that are not committed")
    monkeypatch.setattr(package, "commit_of_tree", lambda: "1234abcd")
    with monkeypatch.context() as without_gpg:
        without_gpg.setenv("PATH", "")
        expect_refused(key, "gpg is missing: apt-get install gnupg")
    for left_out in ("--key", "--url"):  # as `make` gives what is not set
        argv = {"--key": key, "--url": SERVED_AT, left_out: ""}
        with pytest.raises(SystemExit, match="2"):
            repository.main([word for option in argv.items() for word in option])
        assert "give KEY=ID" in capfd.readouterr().err
    assert not Path(to).exists()


def checked(dist: Path) -> tuple[int, int]:
    """Return how sha256sum and gpg ended."""
    sums = subprocess.run(
        ["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=dist, capture_output=True
    )
    argv = ["gpg", "--verify", "SHA256SUMS.asc", "SHA256SUMS"]
    return sums.returncode, subprocess.run(argv, cwd=dist, capture_output=True).returncode


def test_the_bill_of_materials_names_each_library_of_the_package(tmp_path: Path) -> None:
    packages.write(tmp_path / "dist", TARGETS[:1], None)
    (path,) = (tmp_path / "dist").glob("*.cdx.json")
    bill = json.loads(path.read_text())
    validator = jsonschema.Draft7Validator(
        schema("bom-1.6"),
        registry=Registry().with_resources(
            (
                f"http://cyclonedx.org/schema/{name}.schema.json",
                Resource.from_contents(schema(name)),
            )
            for name in ("spdx", "jsf-0.82")
        ),
    )
    assert list(validator.iter_errors(bill)) == []
    deb = path.with_name(path.name.removesuffix(".cdx.json"))
    found = {
        (match[1], match[2])
        for file in built.deb_files(deb)
        if (match := re.search(r"/site/([^/]+)-([^/-]+)\.dist-info/METADATA$", file))
    }
    listed = {(each["name"].replace("-", "_"), each["version"]) for each in bill["components"]}
    assert {(name.lower().replace(".", "_"), version) for name, version in found} == listed
    assert len(listed) > 20
    pins = {
        name: hashes
        for name, _, hashes in PIN.findall((package.TOP / "packaging/site.txt").read_text())
    }
    for each in bill["components"]:
        assert each["hashes"][0]["content"] in pins[each["name"]]
        assert each["licenses"], each["name"]


@only_in_test_all("a package that `make test` does not build")
def test_the_bill_of_an_rpm_names_what_travels_with_it(tmp_path: Path) -> None:
    packages.write(tmp_path / "dist", [TARGETS[1], installed.FEDORA], None)
    assert libraries(tmp_path / "dist", "*.rpm") - libraries(tmp_path / "dist", "*.deb") == {
        "cffi",
        "pynacl",
        "sdnotify",
    }


def libraries(dist: Path, package_file: str) -> set[str]:
    """Return the names in the bill of the one package that has such a name.

    Each library has a digest: of its wheel, or of its file.
    """
    (path,) = dist.glob(f"{package_file}.cdx.json")
    listed = json.loads(path.read_text())["components"]
    for each in listed:
        (digested,) = each.get("components", [each])
        assert len(digested["hashes"][0]["content"]) == 64
    return {each["name"] for each in listed}


def schema(name: str) -> dict[str, object]:
    """Return a schema of CycloneDX."""
    text = (SCHEMAS / f"{name}.SNAPSHOT.schema.json").read_text()
    parsed: dict[str, object] = json.loads(text)
    return parsed


@only_in_test_all("a root with the tools of apt and dnf")
@on_release("trixie")
def test_apt_installs_from_the_repository_what_its_key_has_signed(
    boot: Callable[..., Machine], key: str, tmp_path: Path
) -> None:
    repository.write(tmp_path / "repository", TARGETS, key, SERVED_AT)
    machine = boot(package=False)
    shutil.copytree(tmp_path / "repository", machine.path("/srv/repository"))
    machine.as_root(
        "chmod -R go=rX /srv; rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*;"
        "mkdir -p /etc/apt/keyrings; cp /srv/repository/mcpwrap.asc /etc/apt/keyrings/;"
        "cp /srv/repository/deb13.sources /etc/apt/sources.list.d/mcpwrap.sources"
    )
    lists = "/srv/repository/apt/dists/trixie/main/binary-amd64"
    # A list that was changed after it was signed is refused; the twin is the one that was signed.
    machine.as_root(f"cp {lists}/Packages /root/; echo >> {lists}/Packages; rm {lists}/Packages.gz")
    known = machine.as_root("apt-get update; apt-cache policy mcpwrap").out
    assert "mcpwrap" not in known.partition("Version")[2]
    signed = machine.as_root(f"cp /root/Packages {lists}/Packages; apt-get update")
    assert "have been ignored" not in signed.err
    machine.as_root("apt-get install -y --no-install-recommends mcpwrap")
    assert machine.look("dpkg-query -Wf '${Version}' mcpwrap") == f"{package.version()}+deb13"
    # Of Debian 12 the repository has the other one.
    machine.as_root(
        "sed -i 's/trixie/bookworm/' /etc/apt/sources.list.d/mcpwrap.sources; apt-get update"
    )
    assert f"{package.version()}+deb12" in machine.look("apt-cache policy mcpwrap")
    # Without its key nothing is taken.
    machine.as_root("rm /etc/apt/keyrings/mcpwrap.asc")
    assert "They have been ignored" in machine.as_root("apt-get update").err


@only_in_test_all("needs Debian testing; that of apt is its neighbour")
@pytest.mark.timeout(1800)  # with the roots and the packages
def test_dnf_installs_from_the_repository_what_its_key_has_signed(key: str, tmp_path: Path) -> None:
    repository.write(tmp_path / "repository", [installed.FEDORA], key, SERVED_AT)
    with installed.rpm_machine() as machine:
        shutil.copytree(tmp_path / "repository", machine.path("/srv/repository"))
        machine.as_root(
            "chmod -R go=rX /srv; mkdir -p /etc/yum.repos.d;"
            "cp /srv/repository/fc43.repo /etc/yum.repos.d/mcpwrap.repo"
        )
        (rpm,) = machine.look("ls /srv/repository/dnf/fc43/x86_64/*.rpm").split()
        index = f"{rpm.rpartition('/')[0]}/repodata/repomd.xml"
        # A list that was changed after it was signed is refused; so is a package.
        machine.as_root(f"cp {index} /root/; echo >> {index}")
        machine.as_root(DNF, status=1)
        machine.as_root(f"cp /root/repomd.xml {index}; cp {rpm} /root/kept.rpm; echo >> {rpm}")
        machine.as_root(DNF, status=1)
        assert "not installed" in machine.as_root("rpm -q mcpwrap", status=1).out
        machine.as_root(f"cp /root/kept.rpm {rpm}; {DNF}")  # the twin
        assert machine.look("rpm -q mcpwrap").startswith(f"mcpwrap-{package.version()}-1.")
