"""Calls of a server in projects, by an agent that starts it. Runs in a machine, as the agent.

Its argument is the bound of each session in seconds. Reads from standard input a JSON object with
the script that makes the projects as they are at first, their paths, what to start by way, and the
calls; `${PROJECT}` is the project's path. Prints a JSON object: of each way and project the steps
with what came of them, and the project's files with owner, mode and content.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.system.guest.tours import dumped

PROJECT = "${PROJECT}"


def filled(value: Any, project: str) -> Any:
    """Return a value of JSON with the path of the project in its texts."""
    return json.loads(json.dumps(value).replace(PROJECT, project))


async def use(server: dict[str, Any], given: dict[str, Any], project: str) -> list[Any]:
    """Start the server in the project, list what it has and make the calls."""
    import anyio
    import mcp_types as types
    from mcp import Client, MCPError, StdioServerParameters

    is_ready = anyio.Event()

    async def hear(message: Any) -> None:
        if given["tells"] in str(dumped(message)):
            is_ready.set()

    async def list_roots(_context: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri=f"file://{project}", name="project")])

    command, *args = server["command"]
    started = StdioServerParameters(command=command, args=args, env=server["env"], cwd=project)
    async with Client(
        started, mode="legacy", list_roots_callback=list_roots, message_handler=hear
    ) as client:
        about = (client.protocol_version, client.server_info, client.server_capabilities)
        steps: list[Any] = [["about", [*map(dumped, about), client.instructions]]]
        if given["tells"]:
            await is_ready.wait()
        steps.append(["tools", dumped(await client.list_tools())])
        for tool, arguments in given["calls"]:
            try:
                steps.append([tool, dumped(await client.call_tool(tool, arguments))])
            except MCPError as error:
                steps.append([tool, {"error": [error.code, error.message]}])
    return steps


def files(project: str) -> dict[str, list[str]]:
    """Return owner, group, mode and content of each file below the project, by its path there.

    A link is not followed.
    """
    found = {}
    for folder, names, others in os.walk(project):
        for path in (Path(folder, name) for name in (*names, *others)):
            if path.is_symlink():
                content = str(path.readlink())
            else:
                content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            status = path.lstat()
            about = [str(status.st_uid), str(status.st_gid), f"{status.st_mode:o}", content]
            found[str(path.relative_to(project))] = about
    return found


async def bounded(within_s: float, *values: Any) -> list[Any]:
    """Use the server for this time at most."""
    import anyio

    with anyio.fail_after(within_s):
        return await use(*values)


def main(within_s: float, given: dict[str, Any]) -> dict[str, Any]:
    """Use the server in each way, in each project in turn."""
    import anyio

    made: dict[str, Any] = {}
    for way, server in given["ways"].items():
        subprocess.run(["sh", "-ec", given["prepare"]], check=True)
        made[way] = {}
        for project in given["projects"]:
            values = (filled(server, project), filled(given, project), project)
            steps = anyio.run(bounded, within_s, *values)
            made[way][project] = {"steps": steps, "files": files(project)}
    return made


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1]), json.load(sys.stdin))))
