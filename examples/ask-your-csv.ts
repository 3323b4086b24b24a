// A product: upload a CSV file, ask about it, approve the code, watch it run, see the chart, download files. The model is a script.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { readEventStream } from "@fenced/core/web";
import { startOpenAIServer } from "./support/model-server.ts";

const program = `
import csv
rows = list(csv.DictReader(open("sales.csv")))
best = max(rows, key=lambda row: int(row["sales"]))
print(best["month"], best["sales"])
with open("chart.svg", "w") as chart:
    chart.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 60 100">')
    for x, row in enumerate(rows):
        height = int(row["sales"])
        chart.write(f'<rect x="{x * 20}" y="{100 - height}" width="16" height="{height}"/>')
    chart.write("</svg>")
`;
await using model = await startOpenAIServer([
  { text: `I look for the month with the highest sales.\n\n\`\`\`python${program}\`\`\`` },
  { text: "February had the highest sales: 90." },
]);
const service = spawn(
  process.execPath,
  [...process.execArgv, fileURLToPath(new URL("ask-your-csv/service.ts", import.meta.url))],
  {
    env: { ...process.env, PORT: "0", OPENAI_BASE_URL: model.baseURL, OPENAI_API_KEY: "none", MODEL: "scripted" },
    stdio: ["ignore", "pipe", "inherit"],
  },
);
process.once("exit", () => service.kill()); // also if an assertion fails
const [line] = (await once(createInterface(service.stdout), "line")) as [string];
console.log(line);
const url = /http:\/\/[\d.:]+\d/.exec(line)?.[0] ?? "";
/** As the page sends it. */
const sameOrigin = { origin: url };
const post = (path: string, body: object, headers = {}): Promise<Response> =>
  fetch(`${url}${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...sameOrigin, ...headers },
  });

assert.match(await (await fetch(url)).text(), /<title>Ask your CSV<\/title>/);
const csv = "month,sales\nJanuary,50\nFebruary,90\nMarch,70\n";
assert.equal((await fetch(`${url}/files/sales.csv`, { method: "PUT", body: csv, headers: sameOrigin })).status, 204);
const foreign = { "content-type": "text/plain", origin: "https://example.com" };
assert.equal((await post("/questions", { question: "?" }, foreign)).status, 403);

let printed = "";
let answer = "";
for await (const event of readEventStream(await post("/questions", { question: "Which month was best?" }))) {
  if (!("type" in event)) continue;
  if (event.type === "CodeApprovalRequestEvent" && "id" in event) {
    assert.equal((await post(`/approvals/${String(event.id)}`, { approved: true })).status, 204);
  }
  if (event.type === "CodeOutputEvent" && "text" in event) printed += String(event.text);
  if (event.type === "TextMessage" && "content" in event) answer = String(event.content);
}
assert.equal(printed, "February 90\n");
assert.equal(answer, "February had the highest sales: 90.");
const chart = await fetch(`${url}/files/chart.svg`);
assert.equal(chart.headers.get("content-type"), "image/svg+xml");
assert.match(await chart.text(), /<rect x="20" y="10"/);
assert.match(await (await fetch(`${url}/files`)).text(), /"path":"chart.svg"/);

service.kill("SIGTERM");
assert.equal(((await once(service, "exit")) as [number | null])[0], 0);
