import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type CodeExecutor, ExecutorStoppedError, InvalidInputError } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { hasAddresses, lacksAddresses, language } from "../needs.ts";
import { start } from "../observe/started-program.ts";

const needs = [hasAddresses, language("python")];

/** Echoes what it receives, and adds a word once it has received everything. Listens on any port, unless it is given one. */
const echo = `import socket, sys, threading
def serve(connection):
    while True:
        piece = connection.recv(65536)
        if not piece:
            break
        connection.sendall(piece)
    connection.sendall(sys.argv[2].encode())
    connection.close()
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()`;

/** Listens, and accepts nothing. */
const deaf = `import socket, time
server = socket.create_server(("127.0.0.1", 0), backlog=5)
print(server.getsockname()[1], flush=True)
time.sleep(600)`;

/** Starts a program that listens. @returns its port. */
async function listen(
  kit: CaseContext,
  executor: CodeExecutor,
  program: string,
  { port = 0, word = "" } = {},
): Promise<number> {
  const { stdout } = await start(kit, executor, {
    command: ["python3", "-c", program, String(port), word],
    merged: true,
  });
  const reader = stdout.pipeThrough(new TextDecoderStream()).getReader();
  let said = "";
  for (let done = false; !done && !said.includes("\n");) {
    const next = await kit.within("the first line of output", reader.read());
    said += next.value ?? "";
    done = next.done;
  }
  assert.match(said, /^\d+\n$/);
  return Number(said);
}

function addressOf(kit: CaseContext, executor: CodeExecutor, port: number): Promise<string> {
  assert.ok(executor.processes, "an executor with `capabilities.addresses` has `processes`");
  return kit.within("address()", executor.processes.address(port));
}

function connectTo(address: string, allowHalfOpen = false): Socket {
  const [, number] = /^127\.0\.0\.1:(\d+)$/.exec(address) ?? [];
  assert.ok(number !== undefined, `${address} is no address of this host`);
  const socket = connect({ port: Number(number), host: "127.0.0.1", allowHalfOpen });
  return socket.on("error", () => {});
}

async function exchange(kit: CaseContext, address: string, content: Buffer): Promise<Buffer> {
  const socket = connectTo(address, true);
  const answer = new Response(ReadableStream.from(socket)).arrayBuffer();
  socket.end(content);
  return Buffer.from(await kit.within("the answer", answer));
}

/** Waits for the end of a connection. */
async function ended(kit: CaseContext, socket: Socket): Promise<void> {
  socket.resume();
  if (!socket.closed) await kit.within("the end of the connection", once(socket, "close"));
}

const leading: ConformanceCase = {
  name: "lead to the port of a program without a network, both ways, and to that of the next program",
  needs,
  async run(kit) {
    const executor = await kit.create(kit.subject.takesNetworkPolicy === true ? { network: "none" } : {});
    const port = await listen(kit, executor, echo, { word: "one" });
    const address = await addressOf(kit, executor, port);
    assert.equal(String(await exchange(kit, address, Buffer.from("hello "))), "hello one");
    const large = Buffer.alloc(3_000_000, "abcdefg");
    assert.ok((await exchange(kit, address, large)).equals(Buffer.concat([large, Buffer.from("one")])));
    const answers = await Promise.all([1, 2, 3].map((each) => exchange(kit, address, Buffer.from(`${each} `))));
    assert.deepEqual(answers.map(String), ["1 one", "2 one", "3 one"]);
    await kit.within("restart()", executor.restart());
    await ended(kit, connectTo(address));
    assert.equal(await listen(kit, executor, echo, { port, word: "two" }), port);
    assert.equal(await addressOf(kit, executor, port), address);
    assert.equal(String(await exchange(kit, address, Buffer.from("hello "))), "hello two");
  },
};

const limited: ConformanceCase = {
  name: "are limited in number, and end at once where nothing can listen",
  needs,
  async run(kit) {
    const executor = await kit.create();
    for (const wrong of [0, 65_536, 1.5]) {
      await kit.rejects(InvalidInputError, String(wrong), executor.processes?.address(wrong) ?? Promise.resolve());
    }
    const others = await Promise.all(Array.from({ length: 64 }, (_, index) => addressOf(kit, executor, index + 1)));
    assert.equal(new Set(others).size, 64);
    const more = executor.processes?.address(65) ?? Promise.resolve();
    await kit.rejects(InvalidInputError, "one more", more, /64 ports/);
    assert.equal(await addressOf(kit, executor, 64), others.at(-1));
    // No program listens on port 1.
    await ended(kit, connectTo(others[0] ?? ""));
  },
};

const deafProgram: ConformanceCase = {
  name: "carry no more connections than their limit to a program that accepts none, and close with the executor",
  needs,
  async run(kit) {
    const executor = await kit.create();
    const port = await listen(kit, executor, deaf);
    const address = await addressOf(kit, executor, port);
    const sockets = Array.from({ length: 200 }, () => connectTo(address).resume());
    await kit.eventually("those beyond the limit end", async () => {
      return sockets.filter(({ closed }) => closed).length >= 72 || undefined;
    });
    // Other things go on meanwhile.
    await kit.succeed(executor, { language: "python", code: "print('goes on')" });
    await kit.within("stop()", executor.stop());
    for (const socket of sockets) await ended(kit, socket);
    await kit.rejects(ExecutorStoppedError, "address()", executor.processes?.address(port) ?? Promise.resolve());
  },
};

const refused: ConformanceCase = {
  name: "are refused with a sentence where there are none",
  needs: [lacksAddresses],
  async run(kit) {
    const executor = await kit.shared();
    const asked = executor.processes?.address(8000) ?? Promise.resolve();
    await kit.rejects(InvalidInputError, "address()", asked, /cannot be reached/);
  },
};

/** Ports of programs, reached from this host. */
export const addresses: ConformanceGroup = {
  name: "addresses",
  waits: true,
  cases: [leading, limited, deafProgram, refused],
};
