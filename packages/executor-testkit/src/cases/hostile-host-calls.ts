import assert from "node:assert/strict";
import { type CodeExecutor, type HostFunction, hostFunction } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { hostFunctionsIn, specialFiles } from "../needs.ts";
import type { SharedOptions } from "../shared-executors.ts";

const inPython = [hostFunctionsIn("python")];
const python = (code: string) => ({ language: "python", code });

/** A function that adds two numbers. */
export const add = (): HostFunction =>
  hostFunction({
    name: "add",
    description: "Adds.",
    input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
    execute: ({ a, b }) => Number(a) + Number(b),
  });

/** Offers `add`, for cases that need nothing else. */
export const offersAdd: SharedOptions = () => ({ functions: [add()] });

/** Asserts that blocks can still call `add`, whatever happened. */
export async function assertCallable(kit: CaseContext, executor: CodeExecutor): Promise<void> {
  const result = await kit.succeed(executor, python("from functions import add\nprint(add(20, 22))\n"));
  assert.equal(result.output, "42\n");
}

/** Talks to the host without a stub. */
const rawPython = `import os, socket, struct, sys
def connect(token=os.environ["FENCED_HOST_TOKEN"]):
    kind, _, place = os.environ["FENCED_HOST_CALLS"].partition(":")
    if kind == "files":
        from functions import add
        made = sys.modules["_fenced_host_calls"].Files(place)
        if token is not None:
            send(made, 1, 0, token.encode())
        return made
    if kind == "unix":
        made = socket.socket(socket.AF_UNIX)
    else:
        made = socket.socket()
        place = (place.rpartition(":")[0], int(place.rpartition(":")[2]))
    made.settimeout(30)
    made.connect(place)
    if token is not None:
        send(made, 1, 0, token.encode())
    return made
def send(to, kind, number, payload):
    to.sendall(struct.pack(">IBI", len(payload) + 5, kind, number) + payload)
def answer(of):
    got = b""
    try:
        while True:
            piece = of.recv(65536)
            if not piece:
                return got
            got += piece
    except ConnectionError:
        return got
`;

/** Programs that do what no stub would do. */
export const hostileHostCalls: readonly ConformanceCase[] = [
  {
    name: "refuse a forged token and the token of a block that has ended",
    needs: [...inPython, specialFiles],
    async run(kit) {
      const executor = await kit.create({ functions: [add()] });
      await kit.succeed(executor, python(`${rawPython}open("token", "w").write(os.environ["FENCED_HOST_TOKEN"])\n`));
      const code = `${rawPython}
own = os.environ["FENCED_HOST_TOKEN"]
block = own.partition(".")[0]
old = open("token").read()
for token in ("", "x", ".", block, block + ".", block + "." + "0" * 64, own[:-1], own + "00", old, "x" * 256, own + "\\n"):
    made = connect(token)
    try:
        send(made, 2, 1, b'add\\n{"a": 1, "b": 2}')
    except ConnectionError:
        pass
    got = answer(made)
    assert b"3" not in got[9:], (token, got)
made = connect(None)
send(made, 2, 1, b'add\\n{"a": 1, "b": 2}')
assert b"NotConnectedError" in answer(made)
print("refused")
`;
      assert.equal((await kit.succeed(executor, python(code))).output, "refused\n");
      await assertCallable(kit, executor);
    },
  },
  {
    name: "survive forged frames, which end only their own connection",
    needs: [...inPython, specialFiles],
    async run(kit) {
      const executor = await kit.create({ functions: [add()] });
      const code = `${rawPython}
call = b'add\\n{"a": 1, "b": 2}'
forged = [
    b"GET / HTTP/1.1\\r\\n\\r\\n" * 1000,
    b"\\xff" * 100,
    b"\\0" * 100,
    struct.pack(">IBI", 5, 99, 1),
    struct.pack(">IBI", 5, 2, 1),
    struct.pack(">IBI", 5 + len(b"add\\nnot json"), 2, 1) + b"add\\nnot json",
    struct.pack(">IBI", 2 ** 32 - 1, 2, 1) + b"x" * 100000,
    struct.pack(">IBI", 5, 16, 1),
]
for bytes_ in forged:
    made = connect()
    try:
        made.sendall(bytes_)
    except ConnectionError:
        pass
    assert answer(made) == b"", bytes_[:20]
silent = [connect(None) for _ in range(20)] + [connect() for _ in range(20)]
silent[0].sendall(b"\\0\\0")
for name in ("constructor", "__proto__", "toString", "nobody", ""):
    made = connect()
    send(made, 2, 1, name.encode() + b"\\n{}")
    header = made.recv(9)
    assert header[4] == 17, (name, header)
made = connect()
send(made, 2, 7, b"add\\n" + b"[" * 100000 + b"]" * 100000)
assert made.recv(9)[4] == 17
made = connect()
send(made, 2, 7, call)
assert made.recv(10)[9:] == b"3"
print("survived")
`;
      assert.equal((await kit.succeed(executor, python(code))).output, "survived\n");
      await assertCallable(kit, executor);
    },
  },
];
