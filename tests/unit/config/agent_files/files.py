"""Sample files of agents, and independent parsers of them."""

import json
from pathlib import Path

import tomli
import yaml

from mcpwrap.config.agent_files.entry_schema import Stub, Target
from mcpwrap.config.agent_files.entry_writer import put_back, rewritten, wrapping
from mcpwrap.config.agent_files.known_agents import BY_ID, KnownAgent
from mcpwrap.config.agent_files.parsed_file import ListedServer, ParsedFile, open_file, servers
from mcpwrap.config.agent_files.syntax.document import Language
from mcpwrap.config.agent_files.transport import UnknownTransport
from mcpwrap.core.names import server_name_for

FIXTURES = sorted((Path(__file__).parents[3] / "shared/agent_files").iterdir())


def agent_of(path: Path) -> KnownAgent:
    return BY_ID[path.stem]


def opened(path: Path) -> ParsedFile:
    return open_file(path.name, agent_of(path).files[0].language, path.read_bytes())


def listed(file: ParsedFile, agent: KnownAgent) -> list[ListedServer]:
    return servers(file, agent.files[0].at, agent.words)


def understood(file: ParsedFile, agent: KnownAgent) -> list[ListedServer]:
    return [one for one in listed(file, agent) if not isinstance(one.launch, UnknownTransport)]


def stub(name: str) -> Target:
    return Stub(server_name_for(name))


def wrapped(file: ParsedFile, agent: KnownAgent) -> ParsedFile:
    changes = [wrapping(agent.words, one, stub(one.entry.name)) for one in understood(file, agent)]
    return open_file(file.file, file.language, rewritten(file, changes))


def unwrapped(now: ParsedFile, before: ParsedFile, agent: KnownAgent) -> bytes:
    then = {(one.at, one.entry.name): one for one in listed(before, agent)}
    pairs = [
        (one, then[one.at, one.entry.name])
        for one in understood(now, agent)
        if (one.at, one.entry.name) in then
    ]
    return put_back(now, before, pairs, agent.words)


def read_otherwise(language: Language, content: bytes) -> object:
    text = content.decode("utf-8-sig")
    match language:
        case "toml":
            return tomli.loads(text)
        case "yaml":
            return yaml.safe_load(text)
        case _:
            return json.JSONDecoder().decode(_plain_json(text))


def _plain_json(text: str) -> str:
    """Remove comments and trailing commas, character by character."""
    out: list[str] = []
    at, in_string = 0, False
    while at < len(text):
        end = at + 1
        if in_string:
            end += text[at] == "\\"
            in_string = text[at] != '"'
        elif text[at] == '"':
            in_string = True
        elif text.startswith(("//", "/*"), at):
            at = text.index("\n", at) if text[at + 1] == "/" else text.index("*/", at) + 2
            continue
        elif text[at] in "]}" and "".join(out).rstrip().endswith(","):
            out = list("".join(out).rstrip()[:-1])
        out.append(text[at:end])
        at = end
    return "".join(out)
