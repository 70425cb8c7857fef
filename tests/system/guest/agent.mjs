// What an agent does, with the official client of npm: one call that somebody has to approve, and
// others while it waits. Its argument says which, in JSON; what came of them is printed as JSON.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const { server, mode, tool, given, again, other, otherGiven } = JSON.parse(process.argv[2]);
const client = new Client({ name: "agent", version: "1" }, { versionNegotiation: { mode } });
await client.connect(new StdioClientTransport({ command: "mcpwrap-connect", args: [server] }));
const text = (result) => result.content.map((block) => block.text).join("\n");
const words = [];
const onprogress = (progress) => words.push(progress.message ?? "");
const ask = () => client.callTool({ name: tool, arguments: given }, { onprogress });
const held = ask();
let others = 0;
while (others < 20) {
  await client.callTool({ name: other, arguments: otherGiven });
  others += 1;
}
const answers = [text(await held)];
for (let turn = 0; turn < again; turn += 1) answers.push(text(await ask()));
await client.close();
console.log(JSON.stringify({ others, answers, words }));
