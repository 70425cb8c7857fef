// Plays the conversations with the official TypeScript client, in its 2.x: both eras.
// Its arguments: a JSON object of the servers' commands by client, and the JSON file of conversations.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const CLIENT = "typescript-2";
const capabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } };
const actions = ["accept", "decline", "cancel"];
const modes = {
  legacy: {}, auto: { versionNegotiation: { mode: "auto" } },
  "2026-07-28": { versionNegotiation: { mode: { pin: "2026-07-28" } } },
};

// Listen for changes of the tools, and let the server say that there is one.
const listen = async (client, name) => {
  const subscription = await client.listen({ toolsListChanged: true });
  await client.callTool({ name });
  await subscription.close();
};

const play = {
  lists: async (client) => {
    for (const what of ["Tools", "Prompts", "Resources", "ResourceTemplates"]) {
      await client[`list${what}`]().catch(() => {});
    }
  },
  ping: (client) => client.ping(),
  level: (client, level) => client.setLoggingLevel(level),
  tool: (client, name, given) => client.callTool({ name, arguments: given }),
  progress: (client, name, given) => client.callTool({ name, arguments: given }, { onprogress: () => {} }),
  cancel: (client, name, given) =>
    client.callTool({ name, arguments: given }, { signal: AbortSignal.timeout(100) }),
  prompt: (client, name, given) => client.getPrompt({ name, arguments: given ?? undefined }),
  resource: (client, uri) => client.readResource({ uri }),
  complete: (client, ref, argument, given) =>
    client.complete({ ref, argument, ...(given && { context: { arguments: given } }) }),
  listen,
  subscribe: (client, uri) => client.subscribeResource({ uri }),
  unsubscribe: (client, uri) => client.unsubscribeResource({ uri }),
  "roots changed": (client) => client.sendRootsListChanged(),
};

const commands = JSON.parse(process.argv[2])[CLIENT];
for (const { clients, server, mode, steps } of JSON.parse(readFileSync(process.argv[3], "utf8"))) {
  if (!clients.includes(CLIENT)) continue;
  const era = modes[mode] ?? { supportedProtocolVersions: [mode] };
  const client = new Client({ name: "desk", version: "3" }, { capabilities, ...era });
  client.setRequestHandler("sampling/createMessage", () => (
    { model: "none", role: "assistant", content: { type: "text", text: "はい。\u2028" } }
  ));
  let elicited = 0;
  client.setRequestHandler("elicitation/create", () => {
    const action = actions[elicited++ % 3];
    return action === "accept" ? { action, content: { name: "李雷", check: false, number: 0.5 } } : { action };
  });
  client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///home/alice/data/files" }] }));
  const [command, ...args] = commands[server];
  await client.connect(new StdioClientTransport({ command, args }));
  for (const [verb, ...rest] of steps) {
    await play[verb]?.(client, ...rest)?.catch((error) => console.error(verb, String(error).slice(0, 200)));
  }
  await client.close();
}
