"""Recorder of what real MCP servers say of themselves: `python -m tests.shared.definitions.record`.

As root, with npm, pip and a network for these two: each package of `SERVERS` is installed into a
temporary folder, no script of a package is run, and its server starts as the account `nobody`,
with no network and an environment of its own. What it lists is written to `real/NAME.json`, with
the version and the licence of its package: the texts are their authors', under that licence.

Without names all are recorded, else those that are named: `… record fetch context7`.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distributions
from pathlib import Path
from threading import Timer
from typing import Literal, TypeAlias

FOLDER = Path(__file__).with_name("real")
_NOBODY = 65534  # Source: Debian, /etc/passwd of base-passwd
_ANSWER_WITHIN_S = 60.0
_REVISION = "2025-06-18"
_LISTS = (
    *(("tools/list", "tools", "tools"), ("prompts/list", "prompts", "prompts")),
    ("resources/templates/list", "resourceTemplates", "resources"),
)

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One package with a server, and how it starts."""

    name: str
    registry: Literal["npm", "PyPI"]
    package: str
    program: str  # in the folder of programs that the installation writes
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)  # no value is a real one


def _npm(name: str, package: str, program: str, *arguments: str, **environment: str) -> Server:
    return Server(
        name=name,
        registry="npm",
        package=package,
        program=program,
        arguments=arguments,
        environment=environment,
    )


def _pypi(name: str, package: str, program: str, *arguments: str, **environment: str) -> Server:
    return Server(
        name=name,
        registry="PyPI",
        package=package,
        program=program,
        arguments=arguments,
        environment=environment,
    )


_OFFICIAL = "@modelcontextprotocol/server-"
# Much used servers that list their tools without an account and without a network.
SERVERS = (
    _npm("chrome-devtools", "chrome-devtools-mcp", "chrome-devtools-mcp", "--headless"),
    _npm("context7", "@upstash/context7-mcp", "context7-mcp"),
    _npm("desktop-commander", "@wonderwhy-er/desktop-commander", "desktop-commander"),
    _npm("everything", f"{_OFFICIAL}everything", "mcp-server-everything"),
    _npm("figma", "figma-developer-mcp", "figma-developer-mcp", "--stdio", FIGMA_API_KEY="none"),
    _npm("filesystem", f"{_OFFICIAL}filesystem", "mcp-server-filesystem", "/srv"),
    _npm("firecrawl", "firecrawl-mcp", "firecrawl-mcp", FIRECRAWL_API_KEY="none"),
    _npm("github", f"{_OFFICIAL}github", "mcp-server-github", GITHUB_PERSONAL_ACCESS_TOKEN="none"),
    _npm("memory", f"{_OFFICIAL}memory", "mcp-server-memory"),
    _npm("mongodb", "mongodb-mcp-server", "mongodb-mcp-server"),
    _npm("n8n", "n8n-mcp", "n8n-mcp"),
    _npm("notion", "@notionhq/notion-mcp-server", "notion-mcp-server", NOTION_TOKEN="none"),
    _npm("playwright", "@playwright/mcp", "playwright-mcp", "--headless"),
    _npm(
        "sequential-thinking", f"{_OFFICIAL}sequential-thinking", "mcp-server-sequential-thinking"
    ),
    _npm(
        "slack",
        f"{_OFFICIAL}slack",
        "mcp-server-slack",
        SLACK_BOT_TOKEN="none",
        SLACK_TEAM_ID="none",
    ),
    _npm("tavily", "tavily-mcp", "tavily-mcp", TAVILY_API_KEY="none"),
    _pypi("arxiv", "arxiv-mcp-server", "arxiv-mcp-server"),
    _pypi(
        "atlassian",
        "mcp-atlassian",
        "mcp-atlassian",
        JIRA_URL="https://example.atlassian.net",
        JIRA_USERNAME="none",
        JIRA_API_TOKEN="none",
        CONFLUENCE_URL="https://example.atlassian.net/wiki",
        CONFLUENCE_USERNAME="none",
        CONFLUENCE_API_TOKEN="none",
    ),
    _pypi(
        "aws-documentation",
        "awslabs-aws-documentation-mcp-server",
        "awslabs.aws-documentation-mcp-server",
    ),
    _pypi("excel", "excel-mcp-server", "excel-mcp-server", "stdio"),
    _pypi("fetch", "mcp-server-fetch", "mcp-server-fetch"),
    _pypi("git", "mcp-server-git", "mcp-server-git"),
    _pypi("markitdown", "markitdown-mcp", "markitdown-mcp"),
    _pypi("time", "mcp-server-time", "mcp-server-time"),
    _pypi("word", "office-word-mcp-server", "word_mcp_server"),
)
# Not of the 25, as the finding is true: each of its tools wants the user's prompt, for statistics.
WITH_FINDINGS = (_pypi("blender", "mcp-for-blender", "mcp-for-blender"),)
# Of packages whose metadata names none.
_LICENCES = {"mcp-atlassian": "MIT"}
_OFFICIAL_LICENCE = "MIT and Apache-2.0: LICENSE of github.com/modelcontextprotocol/servers"


def main() -> int:
    """Exit status: 0 all were recorded; 1 some were not, each with its reason on stderr."""
    failed = 0
    for server in (*SERVERS, *WITH_FINDINGS):
        if sys.argv[1:] and server.name not in sys.argv[1:]:
            continue
        try:
            with tempfile.TemporaryDirectory(prefix="definitions-") as folder:
                recorded = _recorded(server, Path(folder))
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            failed = 1
            print(f"{server.name}: {error}", file=sys.stderr)
        else:
            text = _in_lines(recorded).replace(str(folder), "/srv")
            (FOLDER / f"{server.name}.json").write_text(text, encoding="utf-8")
            print(f"{server.name}: {len(text)} bytes", flush=True)
    return failed


def _in_lines(recorded: dict[str, Value]) -> str:
    """Return a record as JSON with one line for each definition."""
    members = [f"{json.dumps(key)}: {_in_line(value)}" for key, value in recorded.items()]
    return "{\n" + ",\n".join(members) + "\n}\n"


def _in_line(value: Value) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value, ensure_ascii=False)
    return "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in value) + "\n]"


def _recorded(server: Server, folder: Path) -> dict[str, Value]:
    folder.chmod(0o755)  # `nobody` reads it
    home = folder / "home"
    home.mkdir()
    os.chown(home, _NOBODY, _NOBODY)
    install = _from_npm if server.registry == "npm" else _from_pypi
    package, programs = install(server.package, folder)
    with _Session(server, programs, home) as session:
        return {"package": package, **session.lists()}


def _from_npm(name: str, folder: Path) -> tuple[dict[str, Value], Path]:
    options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    subprocess.run(["npm", "install", *options, "--prefix", folder, name], check=True)
    about = json.loads((folder / "node_modules" / name / "package.json").read_bytes())
    is_official = name.startswith(_OFFICIAL)
    licence = _OFFICIAL_LICENCE if is_official else about["license"]
    package = _package("npm", name, about["version"], licence)
    return package, folder / "node_modules/.bin"


def _from_pypi(name: str, folder: Path) -> tuple[dict[str, Value], Path]:
    subprocess.run([sys.executable, "-m", "venv", "--copies", folder / "venv"], check=True)
    options = ("--quiet", "--disable-pip-version-check", "--only-binary=:all:")
    subprocess.run([folder / "venv/bin/pip", "install", *options, name], check=True)
    [library] = folder.glob("venv/lib/python3*/site-packages")
    [found] = distributions(name=name, path=[str(library)])
    return _package("PyPI", name, found.version, _licence(found)), folder / "venv/bin"


def _licence(found: Distribution) -> str:
    about = found.metadata
    expressions = about.get_all("License-Expression") or about.get_all("License") or []
    return str(expressions[0]).splitlines()[0] if expressions else _LICENCES[about["Name"]]


def _package(registry: str, name: str, version: str, licence: str) -> dict[str, Value]:
    return {"registry": registry, "name": name, "version": version, "licence": licence}


class _Session:
    """Session with one server over its standard input and output."""

    def __init__(self, server: Server, programs: Path, home: Path) -> None:
        account = (f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--no-new-privs")
        self._stderr = home.parent / "stderr"
        self._process = subprocess.Popen(
            ["unshare", "--net", "setpriv", *account, programs / server.program, *server.arguments],
            env={"HOME": str(home), "PATH": f"{programs}:/usr/bin:/bin", **server.environment},
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr.open("wb"),
            process_group=0,
        )
        self._last_id = 0
        # Its end ends what waits for an answer.
        self._timer = Timer(_ANSWER_WITHIN_S, self._process.kill)

    def __enter__(self) -> "_Session":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._process.kill()
        self._process.wait()

    def lists(self) -> dict[str, Value]:
        """Return what the server lists, all pages of it."""
        client: Value = {"name": "definitions", "version": "1"}
        begun = self._answer(
            "initialize",
            {"protocolVersion": _REVISION, "capabilities": {}, "clientInfo": client},
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        server: dict[str, Value] = {"serverInfo": begun["serverInfo"]}
        if "instructions" in begun:
            server["instructions"] = begun["instructions"]
        for method, key, capability in _LISTS:
            offered = begun["capabilities"]
            is_offered = isinstance(offered, dict) and capability in offered
            server[key] = list(self._pages(method, key)) if is_offered else []
        return server

    def _pages(self, method: str, key: str) -> Iterator[Value]:
        params: dict[str, Value] = {}
        while True:
            result = self._answer(method, params)
            page = result.get(key)
            if isinstance(page, list):
                yield from page
            if not result.get("nextCursor"):
                return
            params = {"cursor": result["nextCursor"]}

    def _answer(self, method: str, params: dict[str, Value]) -> dict[str, Value]:
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        assert self._process.stdout
        for line in self._process.stdout:
            if not line.startswith(b"{"):
                continue  # some servers log here
            message = json.loads(line)
            if message.get("id") == self._last_id and "method" not in message:
                result: dict[str, Value] = message.get("result", {})
                return result
        error = self._stderr.read_text(errors="replace")[-400:]
        raise ValueError(f"it ended without an answer to {method}: {error}")

    def _send(self, message: dict[str, Value]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


if __name__ == "__main__":
    sys.exit(main())
