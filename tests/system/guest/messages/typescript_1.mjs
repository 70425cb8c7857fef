// Plays the conversations with the official TypeScript client, in its 1.x: the handshake era.
// Its arguments: a JSON object of the servers' commands by client, and the JSON file of conversations.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, McpError,
} from "@modelcontextprotocol/sdk/types.js";

const CLIENT = "typescript-1";
const capabilities = {
  sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true },
  tasks: { list: {}, cancel: {}, requests: {} },
};
const actions = ["accept", "decline", "cancel"];

// Let the server do it in a task, look at that, and cancel it.
const task = async (client, name, given) => {
  const { tasks } = client.experimental;
  const options = { task: { ttl: 60000 } };
  for await (const said of tasks.callToolStream({ name, arguments: given }, CallToolResultSchema, options)) {
    if (said.type !== "taskCreated") continue;
    await tasks.listTasks();
    await tasks.cancelTask(said.task.taskId);
  }
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
  progress: (client, name, given) =>
    client.callTool({ name, arguments: given }, undefined, { onprogress: () => {}, resetTimeoutOnProgress: true }),
  cancel: (client, name, given) =>
    client.callTool({ name, arguments: given }, undefined, { signal: AbortSignal.timeout(100) }),
  task,
  prompt: (client, name, given) => client.getPrompt({ name, arguments: given ?? undefined }),
  resource: (client, uri) => client.readResource({ uri }),
  complete: (client, ref, argument, given) =>
    client.complete({ ref, argument, ...(given && { context: { arguments: given } }) }),
  subscribe: (client, uri) => client.subscribeResource({ uri }),
  unsubscribe: (client, uri) => client.unsubscribeResource({ uri }),
  "roots changed": (client) => client.sendRootsListChanged(),
};

const commands = JSON.parse(process.argv[2])[CLIENT];
for (const { clients, server, steps } of JSON.parse(readFileSync(process.argv[3], "utf8"))) {
  if (!clients.includes(CLIENT)) continue;
  const client = new Client({ name: "écran", title: "Écran", version: "1.0.0-β" }, { capabilities });
  client.setRequestHandler(CreateMessageRequestSchema, () => (
    { model: "none", role: "assistant", content: { type: "text", text: "Ja.\n\t„Nein“." } }
  ));
  let elicited = 0;
  client.setRequestHandler(ElicitRequestSchema, () => {
    const action = actions[elicited++ % 3];
    return action === "accept" ? { action, content: { name: "Jürgen", check: true, integer: -3 } } : { action };
  });
  client.setRequestHandler(ListRootsRequestSchema, () => (
    { roots: [{ uri: "file:///home/alice/data/files", name: "fichiers" }] }
  ));
  const [command, ...args] = commands[server];
  await client.connect(new StdioClientTransport({ command, args }));
  for (const [verb, ...rest] of steps) {
    await play[verb]?.(client, ...rest).catch((error) => {
      if (!(error instanceof McpError) && error.name !== "TimeoutError") throw error;
    });
  }
  await client.close();
}
