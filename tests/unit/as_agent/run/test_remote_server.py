"""Options of `mcpwrap run --url`: URL, credentials, and what its client may read."""

import json
import sys
from pathlib import Path

import pytest

from mcpwrap.as_agent.run import remote_server
from mcpwrap.as_agent.run.remote_server import RemoteTarget, parsed
from mcpwrap.as_agent.run.toolchain import CommandContext
from mcpwrap.errors import McpwrapError, UsageError

URL = "https://mcp.example.com/mcp"
TOKEN = "tok-0123456789"
ENVIRON = {
    "TOKEN": TOKEN,
    "SPACED": f" {TOKEN}\n",
    "WHOLE": f"Bearer {TOKEN}",
    "EMPTY": "",
    "BROKEN": f"{TOKEN}\r\nX-More: 1",
    "UMLAUT": "schlüssel",
    "HOME": "/home/alice",
}


def context(*wide: Path) -> CommandContext:
    return CommandContext(frozenset(wide), Path("/"), "/usr/bin", frozenset())


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "https://mcp.example.com:8443/mcp?team=blue",
        "http://localhost/",
        "http://localhost:8000",
        "http://127.0.0.1:65535/mcp?x=1",
        "http://[::1]:8000/mcp",
    ],
)
def test_a_url_is_https_or_of_this_machine(url: str) -> None:
    assert parsed(url, None, (), {}).url == url


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("", "E-CONFIG-URL"),
        ("mcp.example.com", "E-CONFIG-URL"),
        ("http://mcp.example.com/mcp", "E-CONFIG-URL"),
        ("http://localhost.example.com/", "E-CONFIG-URL"),  # not this machine
        ("http://localhost@example.com/", "E-CONFIG-URL"),
        ("http://127.0.0.1.example.com/", "E-CONFIG-URL"),
        ("http://127.0.0.1:65536/", "E-CONFIG-URL"),
        ("http://127.0.0.1:0/", "E-CONFIG-URL"),
        ("http://127.0.0.1/a b", "E-CONFIG-URL"),
        ("http://127.0.0.1/#mcp", "E-CONFIG-URL"),
        ("http://127.0.0.1/\n", "E-CONFIG-URL"),
        ("https://alice:secret@mcp.example.com/", "E-CONFIG-URL"),
        ("https://mcp.example.com/#mcp", "E-CONFIG-URL"),
        ("https://mcp.example.com/${TOKEN}", "E-SECRET-IN-URL"),
        ("https://192.0.2.1/mcp", "E-EGRESS-HOST"),
        ("file:///etc/passwd", "E-CONFIG-URL"),
    ],
)
def test_another_url_is_refused(url: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed(url, None, (), {})
    assert caught.value.code == code
    assert "`[::1]`" in caught.value.fix


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (URL, "mcp-example-com"),
        ("https://mcp.example.com:8443/other", "mcp-example-com"),
        ("https://3d.example.com/", "mcp-3d-example-com"),
        ("https://a-very-long-name.of-a-host.example.com/", "a-very-long-name-of-a-host"),
        ("http://localhost:8000/mcp", "localhost"),
        ("http://127.0.0.1:8000/mcp", "mcp-127-0-0-1"),
        ("http://[::1]:8000/mcp", "server"),
    ],
)
def test_the_default_name_is_that_of_the_host(url: str, name: str) -> None:
    assert RemoteTarget(url, {}, {}).default_name == name


@pytest.mark.parametrize(
    ("bearer", "headers", "sent"),
    [
        (None, (), {}),
        ("TOKEN", (), {"Authorization": f"Bearer {TOKEN}"}),
        ("SPACED", (), {"Authorization": f"Bearer {TOKEN}"}),
        (None, ("Authorization=WHOLE",), {"Authorization": f"Bearer {TOKEN}"}),
        (
            "TOKEN",
            ("X-Api-Key=TOKEN", "X-Of=HOME"),
            {"X-Api-Key": TOKEN, "X-Of": "/home/alice", "Authorization": f"Bearer {TOKEN}"},
        ),
    ],
)
def test_values_of_headers_are_those_of_variables(
    bearer: str | None, headers: tuple[str, ...], sent: dict[str, str]
) -> None:
    target = parsed(URL, bearer, headers, ENVIRON)
    assert target.headers == sent
    assert json.loads(target.environment(context())["MCPWRAP_HEADER_VALUES"]) == sent
    assert TOKEN not in str(target.command())


@pytest.mark.parametrize(
    ("bearer", "headers", "code", "said"),
    [
        ("UNSET", (), "E-RUN-HEADER", "'UNSET' is not set"),
        ("EMPTY", (), "E-RUN-HEADER", "'EMPTY' is not set, or empty"),
        ("", (), "E-RUN-HEADER", "is not set"),
        ("WHOLE", (), "E-RUN-HEADER", "is not a token"),
        ("BROKEN", (), "E-RUN-HEADER", "no header can have"),
        ("UMLAUT", (), "E-RUN-HEADER", "no header can have"),
        (None, ("X-Api-Key",), "E-RUN-HEADER", "has no `=`"),
        (None, ("X-Api-Key=UNSET",), "E-RUN-HEADER", "'UNSET' is not set"),
        (None, ("X-A=TOKEN", "x-a=HOME"), "E-RUN-HEADER", "x-a is set twice"),
        ("TOKEN", ("authorization=WHOLE",), "E-RUN-HEADER", "is set twice"),
        (None, ("X Api=TOKEN",), "E-REMOTE-HEADER-NAME", "not a valid header name"),
        (None, ("=TOKEN",), "E-REMOTE-HEADER-NAME", "not a valid header name"),
        (None, ("Host=TOKEN",), "E-REMOTE-HEADER-RESERVED", "set by mcpwrap itself"),
        (None, ("Mcp-Session-Id=TOKEN",), "E-REMOTE-HEADER-RESERVED", "set by mcpwrap itself"),
    ],
)
def test_another_header_is_refused_and_no_value_is_quoted(
    bearer: str | None, headers: tuple[str, ...], code: str, said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parsed(URL, bearer, headers, ENVIRON)
    assert caught.value.code == code
    assert said in caught.value.problem
    assert TOKEN not in str(caught.value)


def test_the_client_gets_the_way_out_and_authorities_and_no_other_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    proxies = {"HTTPS_PROXY": "http://proxy.example:3128", "no_proxy": "a.example"}
    others = {"HTTP_PROXY": "http://proxy.example:3128", "NO_PROXY": "", "PYTHONSTARTUP": "/x"}
    environ = ENVIRON | proxies | others | {"SSL_CERT_FILE": "own.pem"}
    target = parsed(URL, "TOKEN", (), environ)
    given = target.environment(context())
    assert {name: given[name] for name in proxies} == proxies
    assert given["SSL_CERT_FILE"] == str(tmp_path / "own.pem")
    assert given["MCPWRAP_REMOTE"] == URL
    assert given.keys() == {
        *proxies, "SSL_CERT_FILE", "MCPWRAP_REMOTE", "MCPWRAP_HEADER_VALUES", "PYTHONPATH"
    }  # fmt: skip
    assert str(tmp_path / "own.pem") in target.to_read()


def test_the_client_reads_code_and_settings_of_the_network_alone(tmp_path: Path) -> None:
    target = parsed(URL, None, (), {})
    assert {"/usr", "/lib", "/proc"} <= {*target.system(tmp_path)}
    assert {"/etc", "/opt", "/sys"}.isdisjoint(target.system(tmp_path))
    assert {"/etc/ssl", "/etc/hosts"} <= {*target.to_read()}
    assert "/etc/passwd" not in target.to_read()


@pytest.fixture
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Import from a folder with a library of mcpwrap's, and from one without."""
    for name in ("libraries/msgspec", "scripts"):
        (tmp_path / name).mkdir(parents=True)
    listed = [str(tmp_path / "libraries"), str(tmp_path / "scripts"), "relative", ""]
    monkeypatch.setattr(sys, "path", [*sys.path, *listed])
    return tmp_path


def test_it_imports_from_folders_of_mcpwrap_and_its_libraries(own_folder: Path) -> None:
    target = parsed(URL, None, (), {})
    own = str(Path(remote_server.__file__).parents[3])
    found = target.environment(context(own_folder))["PYTHONPATH"].split(":")
    assert found[0] == own
    assert str(own_folder / "libraries") in found
    assert {str(own_folder / "scripts"), "relative", ""}.isdisjoint(found)
    assert {*found} <= {*target.to_read()}


def test_it_does_not_see_a_home_in_which_the_code_lies(own_folder: Path) -> None:
    target = parsed(URL, None, (), {})
    with pytest.raises(McpwrapError) as caught:
        target.environment(context(own_folder / "libraries"))
    assert caught.value.code == "E-RUN-URL-CODE"
    assert caught.value.where == str(own_folder / "libraries")
