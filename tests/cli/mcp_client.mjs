// The Model Context Protocol's own client asks a server: mcp_client.mjs PROGRAM FOLDER
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [program, folder] = process.argv.slice(2);
const client = new Client({ name: "mcp_client", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: program, args: ["mcp", "--folder", folder] }));
const { tools } = await client.listTools();
const file = "demo.stagewright";
const questions = [
    ["list_runs", { file }], ["report", { file }], ["report", { file, run: "1f1b" }], ["explain_gaps", { file, run: "1f1b" }],
    ["what_if", { file, changes: ["F*0.5", "link*0"] }], ["compare", { a: file, run_a: "1f1b", b: file, run_b: "zb-h1" }],
    ["sql", { file, query: "SELECT kind, count(*) FROM spans GROUP BY kind" }], ["schedules", {}], ["schedules", { name: "zbv" }],
    ["simulate", { schedule: "zbv", ranks: 4, microbatches: 8 }], ["plan", { ranks: 2, microbatches: 4 }],
    ["draw", { schedule: "zb-h1" }],
];
for (const [name, args] of questions) {
    if (!tools.some((tool) => tool.name === name)) throw new Error(`no tool ${name}`);
    const { content, isError } = await client.callTool({ name, arguments: args });
    if (isError || content[0].text.length > 12100) throw new Error(`${name}: ${content[0].text.slice(0, 200)}`);
}
const wrong = await client.callTool({ name: "report", arguments: { file: "/etc/passwd" } });
if (!wrong.isError) throw new Error("a file outside the folder was read");
await client.close();
console.log(`asked ${questions.length} questions, all answered`);
