// The Model Context Protocol's own client asks a server what mcp_questions.txt has, and compares with the command line:
// mcp_client.mjs PROGRAM FOLDER QUESTIONS LEAST: the least number of questions in it
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [program, folder, table, least] = process.argv.slice(2);
const mostTokens = 4000;
// A real tokenizer where it is installed; else three bytes of JSON are one token, which is more than there are.
const { encode } = await import("gpt-tokenizer").catch(() => ({ encode: (text) => ({ length: Buffer.byteLength(text) / 3 }) }));

const client = new Client({ name: "mcp_client", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: program, args: ["mcp", "--folder", folder] }));
const names = (await client.listTools()).tools.map((tool) => tool.name);

function commandLine(words) {
    const script = `"$0" ${words} --json`;
    return JSON.parse(execFileSync("bash", ["-c", script, program], { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }));
}

// a.b[0][-1][key=value][key.with.dots]; * is the whole.
function at(value, path) {
    for (const part of path === "*" ? [] : path.match(/[^.[\]]+|\[[^\]]*\]/g)) {
        const inside = part.startsWith("[") ? part.slice(1, -1) : null;
        if (inside === null) value = value?.[part];
        else if (inside.includes("=")) value = value?.find((one) => `${one[inside.split("=")[0]]}` === inside.split("=")[1]);
        else value = /^-?\d+$/.test(inside) ? value?.at(Number(inside)) : value?.[inside];
    }
    return value;
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b) ||
    (typeof a === "number" && typeof b === "number" && Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b)));

let failures = 0, asked = 0, refused = 0, derived = 0, largest = 0;
const fail = (question, text) => { ++failures; console.log(`FAIL ${question}\n  ${text}`); };

async function call(question, text) {
    const [, tool, json] = text.match(/^(\S+) (\{.*\})$/);
    if (names.includes(tool) !== (tool !== "nothing")) fail(question, `no tool ${tool}`);
    const answer = await client.callTool({ name: tool, arguments: JSON.parse(json) }).catch((error) => ({ isError: true, content: [{ text: error.message }] }));
    const said = answer.content[0].text;
    const tokens = encode(said).length;
    largest = Math.max(largest, tokens);
    if (tokens > mostTokens) fail(question, `${tokens} tokens`);
    return { said, isError: answer.isError === true, file: JSON.parse(json).file };
}

// The SQL of an answer gives its figures.
async function derive(question, { said, file }) {
    const answer = JSON.parse(said);
    const figures = answer.figures ?? (answer.sources?.bubble_fraction
        ? [{ key: "bubble_fraction", value: answer.bubble_fraction, sql: answer.sources.bubble_fraction }] : []);
    for (const { key, value, sql, unknown, unit } of figures) {
        if (value === null && !unknown) fail(question, `${key} is null without a reason`);
        if (typeof value === "number" && unit === undefined && !/bubble_fraction|rank|step|count|loss/.test(key)) fail(question, `${key} has no unit`);
        if (!sql || typeof value === "object") continue;
        ++derived;
        const rows = commandLine(`sql ${file} "${sql}"`).rows;
        if (rows.length !== 1 || !same(rows[0][0], value)) fail(question, `${sql}: ${JSON.stringify(rows)} is not ${value}`);
    }
}

for (const line of readFileSync(table, "utf8").split("\n")) {
    if (!line || line.startsWith("#")) continue;
    const [question, calls, path, words, place] = line.split(" | ").map((part) => part.trim());
    const texts = calls.split(" && ");
    if (texts.length > 2) fail(question, "more than two calls");
    let last;
    for (const text of texts) last = await call(question, text);
    if (path === "refused") {
        ++refused;
        if (!last.isError || !new RegExp(words).test(last.said)) fail(question, `not refused by ${words}: ${last.said.slice(0, 300)}`);
        continue;
    }
    ++asked;
    if (last.isError) { fail(question, last.said.slice(0, 300)); continue; }
    if (path === "text") {
        if (!new RegExp(words).test(last.said)) fail(question, last.said.slice(0, 300));
        continue;
    }
    const found = at(JSON.parse(last.said), path), expected = at(commandLine(words), place);
    if (process.env.SHOW) console.log(`${question} ${JSON.stringify(found)}`);
    if (found === undefined || expected === undefined || !same(found, expected))
        fail(question, `${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
    await derive(question, last);
}
await client.close();
console.log(`asked ${asked} questions, ${refused} refused, ${derived} figures derived by their SQL, at most ${Math.ceil(largest)} tokens`);
process.exit(failures === 0 && asked >= Number(least) ? 0 : 1);
