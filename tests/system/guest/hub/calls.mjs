// Everything that a server offers, used once by the official TypeScript client. Its argument and its
// output are those of calls.py, with the client's own values.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const { command, mode, prefix, uris, calls } = JSON.parse(process.argv[2]);
const era = mode === "legacy" ? {} : { versionNegotiation: { mode: mode === "auto" ? mode : { pin: mode } } };
const capabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } };
const client = new Client({ name: "desk", version: "3" }, { capabilities, ...era });
const content = { type: "text", text: "a sample" };
client.setRequestHandler("sampling/createMessage", () => ({ model: "none", role: "assistant", content }));
client.setRequestHandler("elicitation/create", () => (
  { action: "accept", content: { name: "Alice", check: true, integer: 7 } }
));
client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///home/alice/files", name: "files" }] }));
const [program, ...args] = command;
await client.connect(new StdioClientTransport({ command: program, args }));

const without = (name) => (name.startsWith(prefix) ? name.slice(prefix.length) : name);
const lists = {};
const outcomes = {};

const read = async (what, method, key) => {
  const entries = [];
  let cursor;
  do {
    const page = await client[method](cursor ? { cursor } : undefined).catch(() => undefined);
    if (!page) return;
    entries.push(...page[what]);
    cursor = page.nextCursor;
  } while (cursor);
  const own = entries.filter((entry) => (key === "name" ? entry.name.startsWith(prefix) : entry[key].includes(uris)));
  lists[what] = Object.fromEntries(own.map((entry) => [
    without(entry[key]), { ...entry, name: without(entry.name) },
  ]));
};
const readAll = async () => {
  await read("tools", "listTools", "name");
  await read("prompts", "listPrompts", "name");
  await read("resources", "listResources", "uri");
  await read("resourceTemplates", "listResourceTemplates", "uriTemplate");
};
await readAll();

const step = async (name, outcome) => {
  try {
    outcomes[name] = await outcome();
  } catch (error) {
    outcomes[name] = { error: String(error).split(prefix || "\0").join("") };
  }
};
for (const [tool, all] of Object.entries(calls)) {
  for (const given of all) {
    // Without its progress: the client drops what is read together with the result.
    await step(`${tool} ${JSON.stringify(given)}`, () => client.callTool({ name: prefix + tool, arguments: given }));
  }
}
await readAll(); // a server may add tools when it knows what the agent can do
for (const [prompt, entry] of Object.entries(lists.prompts ?? {})) {
  const given = Object.fromEntries((entry.arguments ?? []).map((each) => [each.name, "1"]));
  await step(prompt, () => client.getPrompt({ name: prefix + prompt, arguments: given }));
  const [first] = Object.keys(given);
  const ref = { type: "ref/prompt", name: prefix + prompt };
  if (first) await step(`complete ${prompt}`, () => client.complete({ ref, argument: { name: first, value: "1" } }));
}
for (const uri of Object.keys(lists.resources ?? {})) await step(uri, () => client.readResource({ uri }));
await client.close();
console.log(JSON.stringify({ lists, outcomes }));
