import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { DockerCommandLineCodeExecutor, type DockerExecutorOptions } from "../src/index.ts";
import { pythonImage, nodeImage } from "./support/images.ts";

/** Echoes what it receives, and adds "all" once it has received everything. */
const echo = `import socket
server = socket.create_server(("127.0.0.1", 8000))
print("listening", flush=True)
while True:
    connection = server.accept()[0]
    while True:
        piece = connection.recv(65536)
        if not piece:
            break
        connection.sendall(piece)
    connection.sendall(b"all")
    connection.close()`;

async function withServer(options: DockerExecutorOptions) {
  const executor = new DockerCommandLineCodeExecutor({ image: pythonImage, dockerPorts: [8000, 8001], ...options });
  await executor.files.write("echo.py", echo);
  const server = await executor.processes?.start({ command: ["python3", "echo.py"] });
  await server?.stdout.getReader().read();
  const port = (number: number) => executor.processes?.ports.get(number) ?? 0;
  return { port, [Symbol.asyncDispose]: () => executor.stop() };
}

async function exchange(port: number, content: Buffer): Promise<Buffer> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const answered = new Response(ReadableStream.from(socket)).arrayBuffer();
  socket.end(content);
  return Buffer.from(await answered);
}

describe("dockerPorts", needs("docker"), () => {
  it("lead to programs in a container without a network, concurrently and in both directions", async () => {
    await using container = await withServer({ network: "none" });
    const port = container.port(8000);
    expect((await exchange(port, Buffer.from("hello "))).toString()).toBe("hello all");
    const large = Buffer.alloc(3_000_000, "abcdefg");
    const answer = await exchange(port, large);
    expect(answer.length).toBe(large.length + 3);
    expect(answer.subarray(0, -3).equals(large)).toBe(true);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => exchange(port, Buffer.from(`${index} `))),
    );
    expect(answers.map(String)).toEqual(Array.from({ length: 8 }, (_, index) => `${index} all`));
  });

  it("close a connection to a port where nothing listens, and all connections on stop()", async () => {
    const container = await withServer({ network: "none" });
    const refused = connect(container.port(8001), "127.0.0.1");
    refused.on("error", () => {});
    await once(refused, "close");
    const open = connect(container.port(8000), "127.0.0.1");
    open.on("error", () => {});
    open.write("x");
    await once(open, "data");
    const closed = once(open, "close");
    await container[Symbol.asyncDispose]();
    await closed;
    const late = connect(container.port(8000), "127.0.0.1");
    await expect(text(late)).rejects.toThrow("ECONNREFUSED");
  });

  it("are rejected if the image has no Python, or if they are not ports", async () => {
    await using executor = new DockerCommandLineCodeExecutor({ image: nodeImage, dockerPorts: [80] });
    await expect(executor.start()).rejects.toSatisfy((error) => InvalidInputError.isInstance(error));
    expect(() => new DockerCommandLineCodeExecutor({ dockerPorts: [0] })).toThrow(/dockerPorts/);
  });
});
