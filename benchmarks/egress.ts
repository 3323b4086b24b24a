/**
 * Measures the cost of the egress proxy: the same 100 MB from a server on this machine, through a tunnel of the proxy and
 * directly, and the same small request. The client and the server are separate processes, as in real use.
 */
// needs: python3
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { EgressProxy } from "@fenced/egress";
import { byTurns, report, timed } from "./measure.ts";
import { startBytesServer } from "./support/bytes-server.ts";

const client = `
import socket, sys
proxy, target, count = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
buffer = bytearray(1048576)
while sys.stdin.readline():
    connection = socket.create_connection(("127.0.0.1", proxy or target))
    if proxy:
        head = "CONNECT 127.0.0.1:%d HTTP/1.1\\r\\nHost: x\\r\\nProxy-Authorization: Basic %s\\r\\n\\r\\n" % (target, sys.argv[4])
        connection.sendall(head.encode())
        answer = b""
        while not answer.endswith(b"\\r\\n\\r\\n"):
            answer += connection.recv(1)
        assert b" 200 " in answer, answer
    connection.sendall(count.encode())
    total = 0
    while True:
        read = connection.recv_into(buffer)
        if not read:
            break
        total += read
    assert total == int(count) * 1048576 + 3, total
    print("done", flush=True)
`;

const { child: host, port: target } = await startBytesServer();
const proxy = new EgressProxy({ allow: [`127.0.0.1:${target}`] });
const { url, port } = await proxy.listen();
const authorization = Buffer.from(`fenced:${new URL(url).password}`).toString("base64");
const programs: ChildProcess[] = [host];

/** A client that fetches the given number of MiB on each call. */
function fetcher(megabytes: number, through: number): () => Promise<number> {
  const child = spawn("python3", ["-c", client, String(through), String(target), String(megabytes), authorization], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  programs.push(child);
  const lines = createInterface(child.stdout);
  return () =>
    timed(async () => {
      const done = once(lines, "line");
      child.stdin.write("\n");
      await done;
    });
}

try {
  report("Egress proxy against the same connections without it", [
    {
      what: "100 MiB",
      unit: "ms",
      ...(await byTurns(9, fetcher(100, 0), fetcher(100, port))),
      goal: "at most 2x",
    },
    {
      what: "connection and first bytes",
      unit: "ms",
      ...(await byTurns(40, fetcher(0, 0), fetcher(0, port))),
      goal: "none",
    },
  ]);
} finally {
  for (const child of programs) child.kill();
  await proxy.close();
}
