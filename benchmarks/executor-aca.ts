/**
 * Measures the overhead of the executor for Azure dynamic sessions over a bare HTTP client: the same code and the same files
 * in undici requests to the same emulator, in the same run. The emulator is a separate process.
 */
// needs: python3
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { finished, pipeline } from "node:stream/promises";
import { ACADynamicSessionsCodeExecutor } from "@fenced/executor-aca";
import { Agent, request } from "undici";
import { byTurns, memoryGrowth, report, timed } from "./measure.ts";

const megabytes = 100;
const directory = await mkdtemp(join(tmpdir(), "fenced-bench-"));
const [source, copy] = [join(directory, "data.bin"), join(directory, "copy.bin")];
{
  await using handle = await open(source, "w");
  for (let written = 0; written < megabytes; written += 1) await handle.write(Buffer.alloc(1_000_000, written));
}

const emulator = spawn(
  process.execPath,
  ["--import", "tsx", "--conditions=@fenced/source", join(import.meta.dirname, "support", "emulator.ts")],
  { stdio: ["pipe", "pipe", "inherit"] },
);
const lines = createInterface(emulator.stdout)[Symbol.asyncIterator]();
const [endpoint = "", token = ""] = String((await lines.next()).value).split(" ");
process.env["FENCED_BENCH_TOKEN"] = token;
const options = { poolManagementEndpoint: endpoint, tokenVariable: "FENCED_BENCH_TOKEN", timeoutMs: 120_000 } as const;
await using executor = new ACADynamicSessionsCodeExecutor(options);
await using requesting = new ACADynamicSessionsCodeExecutor({ ...options, transport: "request" });
const connections = new Agent();

interface Body {
  readonly headers: Readonly<Record<string, string>>;
  readonly content: string | Readable;
}

async function ask(method: "GET" | "POST", path: string, body?: Body): Promise<Readable> {
  const url = `${endpoint}/${path}?api-version=2025-10-02-preview&identifier=raw-session`;
  const headers = { authorization: `Bearer ${token}`, ...body?.headers };
  const content = body === undefined ? {} : { body: body.content };
  const answer = await request(url, { method, headers, dispatcher: connections, ...content });
  if (answer.statusCode >= 300) throw new Error(await answer.body.text());
  return answer.body;
}

async function rawBlock(): Promise<void> {
  const fields = { codeInputType: "Inline", executionType: "Synchronous", code: "print(1)", timeoutInSeconds: 125 };
  const headers = { "content-type": "application/json" };
  const answer = await ask("POST", "executions", { headers, content: JSON.stringify(fields) });
  let text = "";
  for await (const piece of answer) text += String(piece);
  JSON.parse(text);
}

async function rawUpload(): Promise<void> {
  const boundary = "raw-boundary";
  const disposition = 'Content-Disposition: form-data; name="file"; filename="data.bin"';
  const head = `--${boundary}\r\n${disposition}\r\nContent-Type: application/octet-stream\r\n\r\n`;
  const tail = `\r\n--${boundary}--\r\n`;
  const length = head.length + megabytes * 1_000_000 + tail.length;
  const headers = { "content-type": `multipart/form-data; boundary=${boundary}`, "content-length": String(length) };
  const content = Readable.from(
    (async function* () {
      yield head;
      yield* createReadStream(source);
      yield tail;
    })(),
    { objectMode: false },
  );
  await finished((await ask("POST", "files", { headers, content })).resume());
}

async function rawDownload(): Promise<void> {
  await pipeline(await ask("GET", "files/data.bin/content"), createWriteStream(copy));
}

async function block(by = executor): Promise<void> {
  const { exitCode, output } = await by.executeCodeBlocks([{ language: "python", code: "print(1)" }]);
  if (exitCode !== 0 || output !== "1\n") throw new Error(output);
}

const upload = () => executor.files.upload([source]);
const download = () => executor.files.download(["data.bin"], directory);

try {
  report("Azure sessions executor against undici, both to the emulator", [
    {
      what: "python block, `print(1)`",
      unit: "ms",
      ...(await byTurns(
        100,
        () => timed(rawBlock),
        () => timed(() => block()),
      )),
      goal: "",
    },
    {
      what: 'the same, with `transport: "request"`',
      unit: "ms",
      ...(await byTurns(
        100,
        () => timed(rawBlock),
        () => timed(() => block(requesting)),
      )),
      goal: "",
    },
    {
      what: "upload of 100 MB",
      unit: "ms",
      ...(await byTurns(
        5,
        () => timed(rawUpload),
        () => timed(upload),
      )),
      goal: "",
    },
    {
      what: "download of 100 MB",
      unit: "ms",
      ...(await byTurns(
        5,
        () => timed(rawDownload),
        () => timed(download),
      )),
      goal: "",
    },
    {
      what: "memory growth by an upload of 100 MB",
      unit: "MB",
      ...(await byTurns(
        3,
        () => memoryGrowth(rawUpload),
        () => memoryGrowth(upload),
      )),
      goal: "bounded",
    },
    {
      what: "memory growth by a download of 100 MB",
      unit: "MB",
      ...(await byTurns(
        3,
        () => memoryGrowth(rawDownload),
        () => memoryGrowth(download),
      )),
      goal: "bounded",
    },
  ]);
} finally {
  await executor.stop();
  await requesting.stop();
  await connections.destroy();
  emulator.stdin.end();
  await once(emulator, "exit");
  await rm(directory, { recursive: true });
}
