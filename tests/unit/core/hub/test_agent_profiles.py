import pytest

from mcpwrap.core.hub.agent_profiles import profile_of, why_refused
from mcpwrap.core.protocol.json_value import Json


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("claude-code", "Claude Code"),
        ("codex-mcp-client", "Codex"),
        ("github-copilot-developer", "Copilot CLI"),
        ("gemini-cli-mcp-client-v0.61", "Gemini CLI"),
        ("cursor-vscode", "Cursor"),
        ("Claude-Code", None),
        ("", None),
    ],
)
def test_an_agent_is_known_by_its_client_info(client: str, name: str | None) -> None:
    profile = profile_of(client)
    assert (profile.name if profile else None) == name


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "properties": {"a.b-c_1": {}}}, ""),
        ({"type": "object", "properties": {"a": {"anyOf": [{}]}}}, ""),  # not at the top
        ({"anyOf": []}, "Claude Code's model refuses `anyOf` at the top of a schema"),
        ({"oneOf": []}, "Claude Code's model refuses `oneOf` at the top of a schema"),
        ({"allOf": []}, "Claude Code's model refuses `allOf` at the top of a schema"),
        (
            {"properties": {"a b": {}}},
            "Claude Code's model refuses the name of the argument 'a b'",
        ),
        (
            {"properties": {"x" * 65: {}}},
            f"Claude Code's model refuses the name of the argument '{'x' * 65}'",
        ),
        ({"properties": []}, ""),
        ([], ""),
    ],
)
def test_a_tool_that_the_model_refuses(schema: Json, reason: str) -> None:
    tool: dict[str, Json] = {"name": "t", "inputSchema": schema}
    assert why_refused(profile_of("claude-code"), tool) == reason
    assert why_refused(profile_of("codex-mcp-client"), tool) == ""
    assert why_refused(None, tool) == ""
