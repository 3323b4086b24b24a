import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const program = `
import socket, threading
listener = socket.create_server(("127.0.0.1", 0), backlog=100)
print(listener.getsockname()[1], flush=True)
piece = bytes(1048576)
def serve(connection):
    count = int(connection.recv(100))
    for _ in range(count):
        connection.sendall(piece)
    connection.sendall(b"end")
    connection.close()
while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
`;

/** A process that sends each client as many MiB as it requests, and then three bytes. */
export async function startBytesServer(): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const child = spawn("python3", ["-c", program], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  return { child, port: Number(line) };
}
