"""MCP server of one tool, `echo`, that starts in a moment: for the time until a session works."""

import json
import sys

TOOL = {"name": "echo", "inputSchema": {"type": "object"}}


def result_of(request: dict[str, object]) -> dict[str, object]:
    """Return the result of a request."""
    params = request.get("params") or {}
    assert isinstance(params, dict)
    if request["method"] == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        about = {"name": "quick", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    if request["method"] == "tools/list":
        return {"tools": [TOOL]}
    if request["method"] == "tools/call":
        text = str(params.get("arguments", {}).get("message", ""))
        return {"content": [{"type": "text", "text": f"Echo: {text}"}]}
    return {}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] in {"initialize", "tools/list", "tools/call", "ping"}:
            answer["result"] = result_of(request)
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
