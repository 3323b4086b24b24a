import { describe, expect, it } from "vitest";
import { systemCallFilter } from "../../src/sandbox/system-call-filter.ts";
import { auditArchitectures, systemCalls, type SystemCallTable } from "../../src/sandbox/system-calls.ts";

const [allow, eperm, enosys, noFamily] = [0x7fff_0000, 0x5_0001, 0x5_0026, 0x5_0061];

/** Runs the filter as the kernel does, and returns its answer. */
function ask(
  table: SystemCallTable,
  call: number,
  words: readonly number[] = [],
  architecture = auditArchitectures[table],
): number {
  const program = systemCallFilter(table);
  const data = new Map([
    [0, call],
    [4, architecture],
    ...words.map((word, index): [number, number] => [16 + 8 * index, word]),
  ]);
  let loaded = 0;
  for (let at = 0; at < program.length / 8; at += 1) {
    const [operation, jumpTrue, jumpFalse] = [
      program.readUInt16LE(at * 8),
      program[at * 8 + 2] ?? 0,
      program[at * 8 + 3] ?? 0,
    ];
    const operand = program.readUInt32LE(at * 8 + 4);
    if (operation === 0x06) return operand;
    if (operation === 0x20) loaded = data.get(operand) ?? 0;
    else if (operation === 0x15) at += loaded === operand ? jumpTrue : jumpFalse;
    else if (operation === 0x35) at += loaded >= operand ? jumpTrue : jumpFalse;
    else if (operation === 0x45) at += (loaded & operand) === 0 ? jumpFalse : jumpTrue;
    else throw new Error(`unknown operation ${operation}`);
  }
  throw new Error("no answer");
}

/** The number of a call. */
function numberOf(table: SystemCallTable, name: string): number {
  const number = systemCalls[name]?.[table === "x64" ? 0 : 1];
  if (number === undefined) throw new Error(`${table} has no ${name}`);
  return number;
}

describe.each(["x64", "arm64"] as const)("the system call filter for %s", (table) => {
  it.each([
    ["mount", [], eperm],
    ["bpf", [], eperm],
    ["keyctl", [], eperm],
    ["io_uring_setup", [], enosys],
    ["clone3", [], enosys],
    ["unshare", [0x1000_0000], eperm],
    ["unshare", [0x400], allow],
    ["clone", [0x1000_0011], eperm],
    ["clone", [0x003d_0f00], allow],
    ["ioctl", [0, 0x5412], eperm],
    ["ioctl", [0, 0x541c], eperm],
    ["ioctl", [0, 0x5401], allow],
    ["socket", [1, 1, 0], allow],
    ["socket", [2, 1, 0], allow],
    ["socket", [10, 2, 0], allow],
    ["socket", [16, 3, 0], allow],
    ["socket", [16, 3, 15], noFamily],
    ["socket", [17, 3, 0], noFamily],
    ["socket", [40, 1, 0], noFamily],
    ["socketpair", [1, 1, 0], allow],
    ["socketpair", [30, 1, 0], noFamily],
    ["io_setup", [], enosys],
    ["fcntl", [0, 1024], eperm],
    ["fcntl", [0, 6], allow],
    ["fchmodat", [0, 0, 0o4755], eperm],
    ["fchmodat", [0, 0, 0o755], allow],
    ["openat", [0, 0, 0o101, 0o4755], eperm],
    ["openat", [0, 0, 0o101, 0o644], allow],
    ["openat", [0, 0, 0o20200001, 0o2755], eperm],
    // Without O_CREAT the mode is whatever was in the register.
    ["openat", [0, 0, 0o1, 0o7777], allow],
  ])("decides on %s(%j)", (name, words, answer) => {
    expect(ask(table, numberOf(table, name), words)).toBe(answer);
  });

  it("rejects all calls of programs for other architectures", () => {
    expect(ask(table, 20, [], 0x4000_0003)).toBe(enosys);
    expect(ask(table, 0x4000_0000 + 39)).toBe(enosys);
  });

  it("allows all calls that it does not name", () => {
    const named = new Set(Object.keys(systemCalls).map((name) => systemCalls[name]?.[table === "x64" ? 0 : 1]));
    const others = Array.from({ length: 500 }, (_, call) => call).filter((call) => !named.has(call));
    expect(others.filter((call) => ask(table, call) !== allow)).toEqual([]);
  });
});
