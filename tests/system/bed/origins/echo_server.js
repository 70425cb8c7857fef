#!/usr/bin/env node
// An MCP server of one tool, `echo`, without a dependency: what the npm package has in it.
const info = { name: "bed-echo", version: "1.0.0" };
const schema = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
const tools = [{ name: "echo", description: "Return the text.", inputSchema: schema }];

function answer(method, params) {
  switch (method) {
    case "initialize":
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: info };
    case "tools/list":
      return { tools };
    case "tools/call":
      return { content: [{ type: "text", text: params.arguments.text }] };
    default:
      return {};
  }
}

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) {
    console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answer(method, params) }));
  }
});
