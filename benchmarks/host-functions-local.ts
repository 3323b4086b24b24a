/**
 * Measures a host function call in a local block, against the same number of round trips of the same bytes over a socket between a
 * bare Python program and this one, both timed by the program itself.
 */
// needs: python3
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { rawCallsCode, reportCalls, wait } from "./support/host-calls.ts";

const directory = await mkdtemp(join(tmpdir(), "fenced-bench-"));
const socket = join(directory, "echo");
const server = net.createServer((connection) => connection.on("data", (data) => connection.write(data)));
await once(server.listen(socket), "listening");

await using executor = new LocalCommandLineCodeExecutor({ functions: [wait], maxHostCalls: 1000 });

async function raw(): Promise<number> {
  const child = spawn("python3", ["-c", rawCallsCode, socket], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (data) => (text += String(data)));
  await once(child, "close");
  return Number(text);
}

await reportCalls("Host functions in a local block", { executor, raw, goal: "< 0.3 ms" });
server.close();
await rm(directory, { recursive: true });
