"""Table of agents: what the model of each one accepts as a tool, and how it names a hub's tools.

Sources: client names, prefixes and `follows_list_changed` of Claude Code, Gemini CLI and opencode
as tests/system/hub/test_hub_agents.py measures them; all else the agents' documentation and issue
trackers, as of November 2026.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mcpwrap.core.protocol.json_value import Json

# Source: the API of Anthropic, "tools.0.custom.input_schema.properties: Property keys should match
# pattern" and "input_schema does not support oneOf, allOf, or anyOf at the top level".
_PROPERTY_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_TOP_LEVEL = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """Limits of one agent."""

    name: str
    client_names: tuple[str, ...]  # of `clientInfo`, or beginnings of it
    prefix: str  # of a tool's name for the model, with the hub's name in it
    max_name_chars: int = 64
    max_tools: int = 0  # 0: no limit known
    follows_list_changed: bool = False
    refuses_schemas: bool = False  # those that the API of Anthropic refuses, with the whole request


AGENT_PROFILES = (
    AgentProfile(
        name="Claude Code",
        client_names=("claude-code",),
        prefix="mcp__{hub}__",
        follows_list_changed=True,
        refuses_schemas=True,
    ),
    AgentProfile(name="Codex", client_names=("codex-mcp-client",), prefix="mcp__{hub}__"),
    AgentProfile(
        name="Copilot CLI",
        client_names=("github-copilot-developer", "copilot"),
        prefix="{hub}-",
        follows_list_changed=True,
    ),
    AgentProfile(
        name="Gemini CLI",
        client_names=("gemini-cli-mcp-client",),
        prefix="mcp_{hub}_",
        max_name_chars=63,
        follows_list_changed=True,
    ),
    AgentProfile(
        name="opencode",
        client_names=("opencode",),
        prefix="{hub}_",  # `mcp__{hub}__` in versions after 1.18, which the bound leaves room for
        follows_list_changed=True,
    ),
    AgentProfile(
        name="Cursor",
        client_names=("cursor",),
        prefix="{hub}",
        max_name_chars=60,
        max_tools=80,
    ),
    AgentProfile(
        name="VS Code",
        client_names=("Visual Studio Code",),
        prefix="mcp_{hub}_",
        max_tools=128,
        follows_list_changed=True,
    ),
)


def profile_of(client_name: str) -> AgentProfile | None:
    """Return the profile of an agent by the name in its `clientInfo`; None for other agents.

    The name is not verified. An agent that gives another one gets a list that its model refuses.
    """
    for profile in AGENT_PROFILES:
        if client_name.startswith(profile.client_names):
            return profile
    return None


def why_refused(profile: AgentProfile | None, tool: Mapping[str, Json]) -> str:
    """Return why an agent's model would refuse all tools because of this one; "" if it would not.

    A schema is never rewritten: the model would then send arguments that the server refuses.
    """
    schema = tool.get("inputSchema")
    if profile is None or not profile.refuses_schemas or not isinstance(schema, dict):
        return ""
    for key in _TOP_LEVEL:
        if key in schema:
            return f"{profile.name}'s model refuses `{key}` at the top of a schema"
    properties = schema.get("properties")
    for key in properties if isinstance(properties, dict) else ():
        if not _PROPERTY_KEY.fullmatch(key):
            return f"{profile.name}'s model refuses the name of the argument {key[:80]!a}"
    return ""
