"""Package sources: root's setting, else the tool's default, without any password."""

from pathlib import Path

import pytest

from mcpwrap.config.model import Destination
from mcpwrap.core.distribution import UNKNOWN
from mcpwrap.errors import UsageError
from mcpwrap.machine import package_sources
from mcpwrap.machine.package_sources import npm, pypi
from mcpwrap.plan.egress.server_egress import PackageSource

# As in npm 9.2 of Debian 12 and 13.
NPM_9 = """
define('rebuild-bundle', {
  default: true,
})
define('registry', {
  default: 'https://npm-default.example/',
  type: url,
})
"""
# As in npm 10 and 11, which name example registries in their descriptions.
NPM_11 = """
  'omit-lockfile-registry-resolved': new Definition('omit-lockfile-registry-resolved', {
    default: false,
  }),
  registry: new Definition('registry', {
    default: 'https://npm-default.example/',
    type: url,
  }),
  description: `npm login --registry=https://registry.corp.example`,
"""
# As in pip 23 and 25.
PIP = """
PyPI = PackageIndex("https://pip-default.example/", file_storage_domain="files.example.org")
TestPyPI = PackageIndex(
    "https://test.example/", file_storage_domain="test-files.example.org"
)
"""


def place(host: str, port: int = 443) -> Destination:
    return Destination(host, port, with_subdomains=False)


URLS = [
    ("https://npm.example/", place("npm.example"), "https://npm.example/"),
    ("https://npm.example", place("npm.example"), "https://npm.example"),
    ("https://npm.example:8443/a/b", place("npm.example", 8443), "https://npm.example:8443/a/b"),
    ("https://NPM.Example/A", place("npm.example"), "https://NPM.Example/A"),
    ("https://u:p@npm.example/a", place("npm.example"), "https://npm.example/a"),
    ("https://u:p@x@npm.example/a", place("npm.example"), "https://npm.example/a"),
    ("https://npm.example/a@b/", place("npm.example"), "https://npm.example/a@b/"),
    ("https://npm.example/a?token=p", place("npm.example"), "https://npm.example/a"),
    ("https://npm.example?token=p", place("npm.example"), "https://npm.example"),
    ("https://npm.example/My%20Feed/", place("npm.example"), "https://npm.example/My%20Feed/"),
]
# With these there is no fallback to the default, which is the public registry.
UNUSABLE = [
    "http://npm.example/",
    "https://10.0.0.5/",
    "https://[fd00::5]/",
    "https://localhost:4873/",
    "https://*.example.org/",
    "https://npm.example:0/",
    "https://npm.example:/",
    "https://${HOST}/",
    "https://npm.example/${PATH}",
    "https://u:p@/",
    "npm.example",
    "file:///srv/npm",
]


@pytest.mark.parametrize(("url", "host", "variable"), URLS)
def test_the_setting_of_root_comes_first(url: str, host: Destination, variable: str) -> None:
    source = npm(["", f"cafile=/x\n registry = {url}\n"], [NPM_11])
    assert source
    assert source.hosts == (host,)
    assert source.variables == {
        "npm_config_registry": variable,
        "npm_config_update_notifier": "false",
    }
    source = pypi(["", f"[global]\nindex-url = {url}\n"], [PIP])
    assert source
    assert source.hosts == (host,)
    assert source.variables == {"PIP_INDEX_URL": variable, "UV_DEFAULT_INDEX": variable}


@pytest.mark.parametrize("url", UNUSABLE)
def test_a_setting_that_cannot_be_allowed_is_not_skipped(url: str) -> None:
    assert npm([f"registry={url}\n", "registry=https://npm.example/\n"], [NPM_11]) is None
    later = "[global]\nindex-url = https://pip.example/\n"
    assert pypi([f"[global]\nindex-url = {url}\n", later], [PIP]) is None


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("registry=https://a.example/\nregistry=https://b.example/\n", "b.example"),  # as npm does
        ("registry='https://a.example/'\n", "a.example"),
        ('registry="https://a.example/" ; ours\n', "a.example"),
        ("registry=https://a.example/\r\nx=y\r\n", "a.example"),
        ("# registry=https://a.example/\n", "npm-default.example"),
        ("@corp:registry=https://a.example/\n", "npm-default.example"),
        ("replace-registry-host=never\n", "npm-default.example"),
    ],
)
def test_npmrc_is_read_as_npm_does(text: str, host: str) -> None:
    source = npm([text], [NPM_11])
    assert source
    assert source.hosts == (place(host),)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("[global]\nindex_url = https://a.example/\n", "a.example"),
        ("[global]\nindex-url: https://a.example/\n", "a.example"),
        ("[global]\ncert = %x\n", "pip-default.example"),  # no interpolation
        ("[install]\nno-deps = yes\n", "pip-default.example"),
        ("[global]\nextra-index-url = https://a.example/\n", "pip-default.example"),
    ],
)
def test_pip_conf_is_read_as_pip_does(text: str, host: str) -> None:
    source = pypi([text], [PIP])
    assert source
    assert source.hosts[0] == place(host)


@pytest.mark.parametrize("no_index", ["no-index = true", "no_index: YES", "no-index=1"])
@pytest.mark.parametrize("folder", ["/srv/wheels", "/opt/python-3.13/wheels_1+2"])
def test_a_folder_of_wheels_needs_no_host(no_index: str, folder: str) -> None:
    index = "index-url = https://pip.example/"  # which pip ignores then
    source = pypi([f"[global]\n{index}\n{no_index}\nfind-links = {folder}\n"], [PIP])
    assert source == PackageSource(
        (),
        {
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": folder,
            "UV_FIND_LINKS": folder,
            "UV_DEFAULT_INDEX": f"file://{folder}",
        },
    )


@pytest.mark.parametrize(
    "folder",
    [
        "",
        "/srv",  # would have every folder of every service as a project
        "/home/alice/wheels",  # servers do not see it
        "/srv/../home/alice",
        "/srv/wheels,/srv/more",
        "/srv/a /srv/b",
        "/srv/a\n  /srv/b",
        "srv/wheels",
        "https://wheels.example/",
        "file:///srv/wheels",
    ],
)
def test_without_an_index_the_public_one_is_not_used(folder: str) -> None:
    text = f"[global]\nno-index = true\nfind-links = {folder}\n"
    assert pypi([text, "[global]\nindex-url = https://pip.example/\n"], [PIP]) is None


@pytest.mark.parametrize("text", ["index-url = x\n", "[global]\na=1\na=2\n", "[global\n"])
def test_a_pip_conf_that_pip_refuses_has_no_source(text: str) -> None:
    assert pypi([text], [PIP]) is None


@pytest.mark.parametrize("text", [NPM_9, NPM_11])
def test_the_default_of_npm_is_found(text: str) -> None:
    source = npm([""], ["", text])
    assert source
    assert source.hosts == (place("npm-default.example"),)
    assert source.variables["npm_config_registry"] == "https://npm-default.example/"


def test_the_default_of_pip_is_two_hosts() -> None:
    source = pypi([], ["", PIP])
    assert source
    assert source.hosts == (place("pip-default.example"), place("files.example.org"))
    assert source.variables == {}


def test_a_machine_without_the_tools_has_no_source() -> None:
    assert npm([""], [""]) is None
    assert pypi([""], [""]) is None


def test_only_a_file_of_root_counts(tmp_path: Path) -> None:
    path = tmp_path / "npmrc"
    assert package_sources._text(str(path)) == ""
    path.touch()
    path.chmod(0o666)
    with pytest.raises(UsageError, match="accounts other than root"):
        package_sources._text(str(path))


def test_a_file_that_other_accounts_can_write_makes_its_group_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "npmrc"
    path.touch()
    path.chmod(0o666)
    for name in ("_NPMRC", "_PIP_CONF"):
        monkeypatch.setattr(package_sources, name, (str(path),))
    assert package_sources.found(UNKNOWN) == {}
