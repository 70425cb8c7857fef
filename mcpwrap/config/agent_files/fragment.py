"""Configuration fragment, in the form of an agent's file, by which the agent finds our servers."""

import json
from collections.abc import Mapping

import yaml

from mcpwrap.config.agent_files.entry_schema import Target
from mcpwrap.config.agent_files.known_agents import KnownAgent
from mcpwrap.config.agent_files.syntax.document import TOML_TABLE
from mcpwrap.config.agent_files.syntax.text_edits import written

Entries = dict[str, dict[str, object]]


def entries(agent: KnownAgent, targets: Mapping[str, Target]) -> Entries:
    """Return the entry of each server.

    Raises:
        ValueError: one is a URL, and this agent has no servers with a URL.
    """
    return {name: agent.words.new_entry(name, target) for name, target in targets.items()}


def fragment(agent: KnownAgent, found: Entries) -> str:
    """Return these entries with all tables around them, as the agent's file has them."""
    file = agent.files[0]
    keys = [key for key in file.at[0] if key is not None]
    if file.language == "toml":
        return "\n".join(_toml_table(".".join([*keys, name]), found[name]) for name in found)
    data: object = list(found.values()) if agent.has_list else found
    for key in reversed(keys):
        data = {key: data}
    if file.language == "yaml":
        return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _toml_table(name: str, entry: Mapping[str, object]) -> str:
    lines = [f"[{name}]", *(written(TOML_TABLE, key, value) for key, value in entry.items())]
    return "\n".join(lines) + "\n"
