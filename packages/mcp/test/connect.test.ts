import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BackendUnavailableError, ExecutorStoppedError, InvalidInputError } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { isAlive } from "@fenced/test-support/is-alive";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { ElicitRequestSchema, type ElicitResult } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it, onTestFinished } from "vitest";
import { PictureExecutor } from "../../ai-sdk/test/support/picture-executor.ts";
import { createMcpServer, type McpServerOptions, type McpTarget } from "../src/index.ts";
import { call, python, textOf } from "./support/call.ts";
import { connectHttp, connectStdio, startCli, startHttp } from "./support/start.ts";

const fixture = fileURLToPath(new URL("fixtures/tools-server.mjs", import.meta.url));

/** The server of the fixture. */
function toolsServer(name: string, ...args: string[]): McpTarget {
  return { command: process.execPath, args: [fixture, name, ...args] };
}

interface ConnectedClient {
  readonly client: Client;
  /** What its user was asked. */
  readonly asked: string[];
}

/** A client of a server that connects to others; its user answers with these, and refuses after that. */
async function connect(options: McpServerOptions, answers?: readonly ElicitResult[]): Promise<ConnectedClient> {
  const executor = new LocalCommandLineCodeExecutor();
  onTestFinished(() => executor.stop());
  const [clientSide, serverSide] = InMemoryTransport.createLinkedPair();
  const { client, asked } = newClient(answers);
  await createMcpServer(executor, { connectTimeoutMs, ...options }).connect(serverSide);
  await client.connect(clientSide);
  onTestFinished(() => client.close());
  return { client, asked };
}

function newClient(answers?: readonly ElicitResult[]): ConnectedClient {
  const client = new Client({ name: "test", version: "1" }, { capabilities: answers ? { elicitation: {} } : {} });
  const asked: string[] = [];
  if (answers) {
    client.setRequestHandler(
      ElicitRequestSchema,
      ({ params }) => answers[asked.push(params.message) - 1] ?? { action: "decline" },
    );
  }
  return { client, asked };
}

/** A slow machine may take long to start Node. */
const connectTimeoutMs = 600_000;

const once: ElicitResult = { action: "accept", content: { allow: "once" } };
const always: ElicitResult = { action: "accept", content: { allow: "session" } };

/** Python that prints the result of each expression, or its error. */
function attempts(...expressions: string[]): string {
  return `import functions, os
for expression in ${JSON.stringify(expressions)}:
    try:
        print(eval(expression, {**vars(functions), "os": os}))
    except functions.HostFunctionError as error:
        print(error)
`;
}

async function lines(client: Client, ...expressions: string[]): Promise<string[]> {
  return (await python(client, attempts(...expressions))).trimEnd().split("\n");
}

describe("tools of other servers", needs("python3"), () => {
  it("are functions with schemas that code can call until their server ends", async () => {
    const { client } = await connect({ connect: [toolsServer("notes"), toolsServer("mail")] });
    const { tools } = await client.listTools();
    const { description } = tools.find(({ name }) => name === "run_code") ?? {};
    expect(description).toMatch(
      /def notes_add_numbers\(a: int, b: int\) -> NotesAddNumbersResult:\n {4}"""Adds two numbers\."""/,
    );
    expect(description).toMatch(/declare function mail_search\(input: \{ query: string \}\): Promise<unknown>;/);

    const found = await lines(
      client,
      "notes_add_numbers(1, 2)",
      "notes_search(query='fox')",
      "mail_search(query='fox')",
      "notes_add_numbers(a='x', b=2)",
      "notes_fail()",
      "notes_crash()",
      "notes_search(query='fox')",
      "mail_search(query='hen')",
    );
    const ended = `BackendUnavailableError: The MCP server <path> has ended. Restart this MCP server to use its functions again.`;
    const wrong = expect.stringMatching(/^ArgumentError: notes_add_numbers: "a": /);
    const failed = "Error: no such thing";
    expect(found).toEqual(["{'sum': 3}", "fox in notes", "fox in mail", wrong, failed, ended, ended, "hen in mail"]);

    const [pid] = (await lines(client, "mail_who()"))[0]?.split(" ").map(Number) ?? [];
    expect(isAlive(pid ?? 0)).toBe(true);
    await client.close();
    await expect.poll(() => isAlive(pid ?? 0), { timeout: 60_000 }).toBe(false);
  });

  it("that change something are called only if the user approves", async () => {
    const odd: ElicitResult = { action: "accept", content: {} };
    const { client, asked } = await connect({ connect: [toolsServer("notes")] }, [
      once,
      odd,
      { action: "decline" },
      always,
    ]);
    expect(
      await lines(client, "search(query='fox')", "remove(1)", "remove(2)", "remove(3)", "remove(4)", "remove(5)"),
    ).toEqual([
      "fox in notes",
      "removed 1",
      "NotApprovedError: The call was not approved: The user gave no clear answer.",
      "NotApprovedError: The call was not approved: The user refused the call. Ask what they want.",
      "removed 4",
      "removed 5",
    ]);
    expect(asked).toHaveLength(4);
    expect(asked[0]).toBe('The running code wants to call remove({"id":1})');
    // One question at a time; the answer to the first counts for all.
    const sideBySide = `import asyncio, functions
async def main():
    print(await asyncio.gather(*[functions.search.aio(query=str(n)) for n in range(3)]))
asyncio.run(main())`;
    const all = await connect({ connect: [toolsServer("notes")], approveCalls: "all" }, [always]);
    expect(await python(all.client, sideBySide)).toBe("['0 in notes', '1 in notes', '2 in notes']\n");
    expect(all.asked).toHaveLength(1);
  });

  it("need approval again from another client", async () => {
    const executor = new LocalCommandLineCodeExecutor();
    onTestFinished(() => executor.stop());
    const server = createMcpServer(executor, { connect: [toolsServer("notes")], connectTimeoutMs });
    for (const client of [newClient([always]), newClient([always])]) {
      const [clientSide, serverSide] = InMemoryTransport.createLinkedPair();
      await server.connect(serverSide);
      await client.client.connect(clientSide);
      expect(await lines(client.client, "remove(1)", "remove(2)")).toEqual(["removed 1", "removed 2"]);
      expect(client.asked).toHaveLength(1);
      await client.client.close();
      await server.close();
    }
  });

  it("that change something are refused if the client cannot ask, unless approveCalls is none", async () => {
    const careful = await connect({ connect: [toolsServer("notes")] });
    expect(await lines(careful.client, "search(query='fox')", "remove(1)")).toEqual([
      "fox in notes",
      expect.stringMatching(
        /^NotApprovedError: .* The user's MCP client does not support elicitation.* with --approve none\.$/,
      ),
    ]);
    const connected = [toolsServer("notes"), toolsServer("notes")];
    const trusting = await connect({ connect: connected, approveCalls: "none" });
    expect(await lines(trusting.client, "notes_remove(1)", "notes_remove_2(2)")).toEqual(["removed 1", "removed 2"]);
  });

  it("work over HTTP with approval, and are disconnected when the session ends", async () => {
    const made: LocalCommandLineCodeExecutor[] = [];
    const createExecutor = () => {
      const executor = new LocalCommandLineCodeExecutor();
      made.push(executor);
      return executor;
    };
    const upstream = await startHttp({ createExecutor });
    const headers = { authorization: `Bearer ${upstream.token}` };
    const server = await startHttp({
      connectTimeoutMs,
      connect: [{ url: upstream.url, headers }, toolsServer("notes")],
    });
    const { client, asked } = newClient([once]);
    const { transport } = await connectHttp(server, onTestFinished, client);
    expect(await lines(client, "list_files()['total']", "remove(1)")).toEqual(["0", "removed 1"]);
    expect(asked).toHaveLength(1);
    const [pid] = (await lines(client, "who()"))[0]?.split(" ").map(Number) ?? [];
    await transport.terminateSession();
    const hasStopped = async () =>
      made[0]?.files.list().then(
        () => false,
        (error: unknown) => ExecutorStoppedError.isInstance(error),
      );
    await expect.poll(hasStopped, { timeout: 60_000 }).toBe(true);
    // A slow machine may need a moment to end a process that was killed.
    await expect.poll(() => isAlive(pid ?? 0), { timeout: 60_000 }).toBe(false);
  });
});

describe("a server that cannot be connected to", () => {
  const refusing = async (target: McpTarget, options: McpServerOptions = {}) => {
    const executor = new LocalCommandLineCodeExecutor();
    onTestFinished(() => executor.stop());
    const [, serverSide] = InMemoryTransport.createLinkedPair();
    const connected = createMcpServer(executor, { connect: [target], connectTimeoutMs, ...options }).connect(
      serverSide,
    );
    const error: unknown = await connected.catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(BackendUnavailableError);
    return error instanceof Error ? error.message : "";
  };

  it("is named with the reason, and leaves no process behind", async () => {
    const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const pidFile = join(directory, "pid");
    const [missing, exits, empty, nobody, silent] = await Promise.all([
      refusing({ command: "no-such-program-of-test" }),
      refusing(toolsServer("exits")),
      refusing(toolsServer("empty")),
      refusing({ url: "http://127.0.0.1:9/mcp" }),
      refusing(toolsServer("silent", pidFile), { connectTimeoutMs: 3000 }),
    ]);
    expect(missing).toMatch(
      /^The MCP server no-such-program-of-test could not be started \(ENOENT\)\. Check the command/,
    );
    expect(exits).toMatch(/ ended before it answered\. Check its messages on standard error/);
    expect(empty).toMatch(/ offers no tools\. Remove it from the servers to connect to\.$/);
    expect(nobody).toMatch(/^The MCP server http:\/\/127\.0\.0\.1:9 could not be reached: fetch failed/);
    expect(silent).toMatch(/ did not answer within 3000 ms\. Check that it speaks MCP\.$/);
    // On a slow machine it may have been killed before its first line.
    const pid = existsSync(pidFile) ? Number(await readFile(pidFile, "utf8")) : undefined;
    await expect.poll(() => pid !== undefined && isAlive(pid), { timeout: 60_000 }).toBe(false);
  });

  it("is given up when the MCP server is closed", async () => {
    const executor = new LocalCommandLineCodeExecutor();
    onTestFinished(() => executor.stop());
    const server = createMcpServer(executor, { connect: [toolsServer("silent")], connectTimeoutMs: 600_000 });
    const refused: Promise<unknown> = server
      .connect(InMemoryTransport.createLinkedPair()[1])
      .catch((error: unknown) => error);
    await server.close();
    expect(await refused).toMatchObject({ name: "AbortError", message: "The server was closed" });
  });

  it("is rejected if code in the executor cannot call it, or if its URL is invalid", async () => {
    const executor = new PictureExecutor({});
    onTestFinished(() => executor.stop());
    const [, serverSide] = InMemoryTransport.createLinkedPair();
    const connecting = createMcpServer(executor, { connect: [toolsServer("notes")] }).connect(serverSide);
    await expect(connecting).rejects.toThrow(/Code in this executor cannot call the tools of other servers/);
    const wrong = () => createMcpServer(executor, { connect: [{ url: "ftp://a" }] });
    expect(wrong).toThrow(InvalidInputError);
    expect(wrong).toThrow(/"connect/);
  });
});

describe("--connect", needs("python3"), () => {
  it(
    "lets sandboxed code call tools of a command that has the environment, and stops the command at the end",
    needs("bubblewrap"),
    async () => {
      const command = `"${process.execPath}" '${fixture}' notes`;
      const env = { SECRET_OF_TEST: "key", FENCED_MCP_TOKEN: "token-of-16-characters" };
      const client = await connectStdio(["--executor", "os-sandbox", "--connect", command, "--approve", "none"], {
        env,
      });
      const [who, removed, own] = await lines(client, "who()", "remove(1)", "os.environ.get('SECRET_OF_TEST')");
      expect(removed).toBe("removed 1");
      expect(own).toBe("None");
      const [pid, secret] = who?.split(" ") ?? [];
      expect(secret).toBe("key");
      await client.close();
      await expect.poll(() => isAlive(Number(pid)), { timeout: 60_000 }).toBe(false);
    },
  );

  it("asks about every tool with --approve all, so that a host which cannot ask refuses them", async () => {
    const command = `"${process.execPath}" '${fixture}' notes`;
    const client = await connectStdio(["--executor", "local", "--connect", command, "--approve", "all"]);
    const code = "from functions import who\ntry: print(who())\nexcept Exception as error: print('refused:', error)";
    expect(await python(client, code)).toMatch(/^refused: .*approv/);
  });

  it("fails at once if code cannot call functions", async () => {
    const byRequests = ["--executor", "aca", "--config", '{"transport":"request"}'];
    const { exitCode, stderr } = await startCli([...byRequests, "--connect", "node", "--http"], {
      ACA_POOL_MANAGEMENT_ENDPOINT: "https://region.dynamicsessions.io/pool",
    }).outcome;
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining("Code in this executor cannot"),
    });
  });

  it.each([[[]], [["--http"]]])("exits at once with the reason if a server does not start: %j", async (more) => {
    const args = ["--executor", "local", "--connect", "no-such-program-of-test --flag", ...more];
    const { exitCode, stdout, stderr } = await startCli(args).outcome;
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toMatch(/The MCP server no-such-program-of-test could not be started \(ENOENT\)/);
    expect(stderr).not.toMatch(/^ +at /m);
  });
});

describe("a network policy", needs("docker"), () => {
  it("reports its refusals in the structured result", async () => {
    const options = { image: "fenced-test:python", pull: "never", network: { allow: ["allowed.example"] } } as const;
    const executor = new DockerCommandLineCodeExecutor(options);
    onTestFinished(() => executor.stop());
    const [clientSide, serverSide] = InMemoryTransport.createLinkedPair();
    await createMcpServer(executor).connect(serverSide);
    const { client } = newClient();
    await client.connect(clientSide);
    onTestFinished(() => client.close());
    const code = "import urllib.request\nurllib.request.urlopen('http://refused.example/')";
    const result = await call(client, "run_code", { language: "python", code });
    const reason = "refused.example is not in this executor's network policy";
    expect(result.structuredContent).toMatchObject({
      network: [{ protocol: "http", host: "refused.example", port: 80, reason }],
    });
    expect(textOf(result)).toContain(reason);
  });
});
