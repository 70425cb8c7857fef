"""Server with tools that run commands and delete, on the official library. Runs inside.

It does nothing but remember its calls. Its argument is a JSON file with the definitions of its
tools; `arrived`, which it has besides, returns the calls of the session, each with its arguments.
"""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

ARRIVED = "arrived"


def make_server(definitions: list[dict[str, Any]]) -> Server:
    """Return the server of one session."""
    calls: list[list[Any]] = []
    returns = {each["name"] for each in definitions if "outputSchema" in each}
    own = {"name": ARRIVED, "inputSchema": {"type": "object", "properties": {}}}
    tools = [types.Tool.model_validate(each) for each in [*definitions, own]]

    async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_ctx: Any, params: Any) -> types.CallToolResult:
        told = f"did {params.name}"
        if params.name == ARRIVED:
            told = json.dumps(calls)
        else:
            calls.append([params.name, params.arguments or {}])
        text = types.TextContent(type="text", text=told)
        structured = {"did": params.name} if params.name in returns else None
        return types.CallToolResult(content=[text], structured_content=structured)

    return Server("workshop", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve(definitions: list[dict[str, Any]]) -> None:
    """Serve on the standard streams."""
    server = make_server(definitions)
    async with stdio_server() as (from_agent, to_agent):
        await server.run(from_agent, to_agent, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(serve, json.loads(Path(sys.argv[1]).read_text()))
