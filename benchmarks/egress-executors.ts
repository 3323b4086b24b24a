/**
 * Measures the cost of a network policy where code runs: 100 MiB from a server on this machine through the supervisor and the
 * proxy, against the same sandbox and the same container in the machine's own network. The block times itself. Image:
 * `FENCED_BENCH_IMAGE` (default `fenced-test:python`).
 */
// needs: docker, bubblewrap, python3
import type { CodeExecutor, NetworkPolicy } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { byTurns, report } from "./measure.ts";
import { startBytesServer } from "./support/bytes-server.ts";

const { child: server, port } = await startBytesServer();
const network: NetworkPolicy = { allow: [`127.0.0.1:${port}`] };
const image = process.env["FENCED_BENCH_IMAGE"] ?? "fenced-test:python";

/** Fetches the given number of MiB, and prints the milliseconds that it took. */
const client = (megabytes: number): string => `
import os, socket, time
buffer = bytearray(1048576)
started = time.perf_counter()
proxy = os.environ.get("ALL_PROXY")
connection = socket.create_connection(("127.0.0.1", int(proxy.rsplit(":")[-1]) if proxy else ${port}))
if proxy:
    connection.sendall(b"CONNECT 127.0.0.1:${port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    answer = b""
    while not answer.endswith(b"\\r\\n\\r\\n"):
        answer += connection.recv(1)
    assert b" 200 " in answer, answer
connection.sendall(b"${megabytes}")
total = 0
while read := connection.recv_into(buffer):
    total += read
assert total == ${megabytes} * 1048576 + 3, total
print((time.perf_counter() - started) * 1000)
`;

async function fetched(executor: CodeExecutor, megabytes: number): Promise<number> {
  const { exitCode, output } = await executor.executeCodeBlocks([{ language: "python", code: client(megabytes) }]);
  if (exitCode !== 0) throw new Error(output);
  return Number(output);
}

async function compare(where: string, direct: CodeExecutor, through: CodeExecutor): Promise<void> {
  report(`Network policy ${where}, against the machine's network there`, [
    {
      what: "100 MiB",
      unit: "ms",
      ...(await byTurns(
        5,
        () => fetched(direct, 100),
        () => fetched(through, 100),
      )),
      goal: "at most 2x",
    },
    {
      what: "connection and first bytes",
      unit: "ms",
      ...(await byTurns(
        10,
        () => fetched(direct, 0),
        () => fetched(through, 0),
      )),
      goal: "none",
    },
  ]);
}

try {
  {
    await using direct = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", network: "open" });
    await using through = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", network });
    await compare("in an OS sandbox", direct, through);
  }
  await using direct = new DockerCommandLineCodeExecutor({ image, dockerNetwork: "host" });
  await using through = new DockerCommandLineCodeExecutor({ image, network });
  await compare("in a container", direct, through);
} finally {
  server.kill();
}
