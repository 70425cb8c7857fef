"""What an agent does, with the official `mcp` client. Each story runs inside the machine.

This file is itself sent into the machine: `script` appends one call to its text.
"""

import inspect
import sys
from typing import Any


def script(story: str, **values: Any) -> str:
    """Return the program that runs one of the stories below and prints what it reports."""
    text = inspect.getsource(sys.modules[__name__])
    call = f"print(json.dumps(anyio.run({story}, {values!r})))"
    return f"{text}\n\nimport json\n\nimport anyio\n{call}\n"


def server(name: str, **more: Any) -> Any:
    """Return how an agent's configuration names a wrapped server."""
    from mcp import StdioServerParameters

    return StdioServerParameters(command="mcpwrap-connect", args=[name], **more)


def text_of(result: Any) -> str:
    """Return the text of a tool's result."""
    return "\n".join(block.text for block in result.content if block.type == "text")


async def call_tool(values: dict[str, Any]) -> str:
    """Call one tool."""
    from mcp import Client, stdio_client

    async with Client(stdio_client(server(values["server"]))) as client:
        return text_of(await client.call_tool(values["tool"], values["arguments"]))
