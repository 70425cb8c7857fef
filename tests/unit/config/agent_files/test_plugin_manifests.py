"""Servers that plugins declare: in a list, in a manifest, in a marketplace."""

import pytest

from mcpwrap.config.agent_files import plugin_manifests
from mcpwrap.config.agent_files.entry_schema import EntrySchema
from mcpwrap.config.agent_files.plugin_manifests import ManifestServers, Marketplace
from mcpwrap.config.agent_files.transport import HttpTransport, StdioTransport, UnknownTransport

WORDS = EntrySchema()
A = {"command": "a"}
B = {"url": "https://b.example/"}


def seen(said: ManifestServers) -> dict[str, object]:
    return {one.entry.name: one.launch for one in said.listed}


@pytest.mark.parametrize(
    ("data", "servers"),
    [
        (
            {"mcpServers": {"a": A, "b": B}},
            {"a": StdioTransport("a"), "b": HttpTransport("https://b.example/")},
        ),
        (
            {"a": A, "$schema": "x", "n": {}},
            {"a": StdioTransport("a")},
        ),  # with no table around them
        ({"mcpServers": {}, "a": A}, {}),
        ({"mcpServers": None}, {}),
        (
            {"mcpServers": None, "a": A},
            {"a": StdioTransport("a")},
        ),  # agents treat a false value as absent
        ({"mcpServers": False, "a": A}, {"a": StdioTransport("a")}),
        ({"mcpServers": 0, "a": A}, {"a": StdioTransport("a")}),
        ({"mcpServers": "", "a": A}, {"a": StdioTransport("a")}),
        ({}, {}),
        (None, {}),
        ([], {}),
    ],
)
def test_a_list_has_servers(data: object, servers: dict[str, object]) -> None:
    assert seen(plugin_manifests.of_list(data, WORDS)) == servers


@pytest.mark.parametrize(
    ("said", "servers", "more"),
    [
        ({"a": A}, {"a": StdioTransport("a")}, ()),
        ("./servers.json", {}, ("./servers.json",)),
        (
            ["./one.json", {"a": A}, "two.json"],
            {"a": StdioTransport("a")},
            ("./one.json", "two.json"),
        ),
        (
            "./x.mcpb",
            {"./x.mcpb": StdioTransport("./x.mcpb")},
            (),
        ),  # a bundle is started, too
        (
            "https://x.example/y.json",
            {"https://x.example/y.json": StdioTransport("https://x.example/y.json")},
            (),
        ),
        (5, {}, ()),
        (None, {}, ()),
    ],
)
def test_a_manifest_has_servers_or_names_files(
    said: object, servers: dict[str, object], more: tuple[str, ...]
) -> None:
    found = plugin_manifests.of_manifest({"name": "p", "mcpServers": said}, WORDS)
    assert seen(found) == servers
    assert found.more == more


def test_a_manifest_is_no_list() -> None:
    assert plugin_manifests.of_manifest({"a": A}, WORDS) == ManifestServers()


def test_what_is_no_server_is_not_understood() -> None:
    [launch] = seen(plugin_manifests.of_list({"mcpServers": {"a": 5}}, WORDS)).values()
    assert isinstance(launch, UnknownTransport)


@pytest.mark.parametrize(
    ("data", "target"),
    [
        ({"type": "link", "source": "/src"}, "/src"),
        ({"type": "local", "source": "/src"}, ""),
        ({"type": "link", "source": 5}, ""),
        ({"type": "link"}, ""),
        (None, ""),
    ],
)
def test_an_extension_may_be_a_link(data: object, target: str) -> None:
    assert plugin_manifests.link(data) == target


def test_what_is_installed_is_read_of_the_registry() -> None:
    registry = {
        "version": 2,
        "plugins": {
            "a@m": [
                {"scope": "user", "installPath": "/a"},
                {"scope": "local", "installPath": "/b", "projectPath": "/p"},
                {"scope": "user"},
                5,
            ],
            "odd@m": 5,
        },
    }
    assert list(plugin_manifests.records(registry)) == [("a@m", "/a", True), ("a@m", "/b", False)]
    assert list(plugin_manifests.records({"plugins": []})) == []
    assert list(plugin_manifests.records(None)) == []


def test_a_marketplace_is_live_where_it_is_a_folder_of_the_person() -> None:
    table = {
        "live": {"source": {"source": "directory", "path": "/l"}, "installLocation": "/l"},
        "copied": {"source": {"source": "github", "repo": "o/r"}, "installLocation": "/c"},
        "nowhere": {"source": {"source": "github", "repo": "o/r"}},
        "odd": 5,
    }
    assert dict(plugin_manifests.marketplaces(table)) == {
        "live": Marketplace("/l", is_live=True),
        "copied": Marketplace("/c", is_live=False),
    }
    assert dict(plugin_manifests.marketplaces(None)) == {}


def test_a_marketplace_says_where_a_plugin_is() -> None:
    here: dict[str, object] = {"name": "a", "source": "./a"}
    there: dict[str, object] = {"name": "b", "source": {"source": "github"}}
    catalogue = {"plugins": [5, there, here]}
    assert plugin_manifests.offered(catalogue, "a") == ("./a", here)
    assert plugin_manifests.offered(catalogue, "b") == ("", there)
    assert plugin_manifests.offered(catalogue, "c") == ("", None)
    assert plugin_manifests.offered({"plugins": 5}, "a") == ("", None)
