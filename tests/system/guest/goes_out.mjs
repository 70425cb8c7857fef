// A server on the official npm SDK that goes out with `fetch`, and with a socket of its own that
// knows no proxy. Runs inside the machine, beside node_modules, where it finds the SDK.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";
import tls from "node:tls";

const server = new McpServer({ name: "goes-out", version: "1" });
const said = (text) => ({ content: [{ type: "text", text: String(text) }] });

server.registerTool("fetch", { inputSchema: { url: z.string() } }, async ({ url }) => {
  try {
    const answer = await fetch(url);
    return said(`${answer.status} ${await answer.text()}`);
  } catch (error) {
    return said(`refused: ${error.cause?.code ?? error.cause?.message ?? error}`);
  }
});

const connect = ({ host }, done) => {
  const socket = tls.connect({ host, port: 443, servername: host }, () =>
    socket.write(`GET /small HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`));
  let text = "";
  socket.on("data", (data) => { text += data; });
  socket.on("end", () => done(said(`200 ${text}`)));
  socket.on("error", (error) => done(said(`refused: ${error.code}`)));
};

server.registerTool("socket", { inputSchema: { host: z.string() } },
  (asked) => new Promise((done) => connect(asked, done)));
await server.connect(new StdioServerTransport());
