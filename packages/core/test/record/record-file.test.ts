import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdtemp, readFile, rm, truncate, writeFile, utimes } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { recordFile, type RecordedRun, verifyRecord } from "@fenced/core";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";

const run: RecordedRun = {
  executor: "AnExecutor",
  blocks: [{ language: "sh", sha256: "0".repeat(64), exitCode: 0 }],
  outcome: "finished",
  exitCode: 0,
  durationMs: 1,
  hostCalls: [],
};

describe("a record in a file", () => {
  let directory = "";
  let file = "";
  beforeEach(async () => {
    directory = await mkdtemp(path.join(tmpdir(), "fenced-record-"));
    file = path.join(directory, "runs.jsonl");
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const add = async (count: number): Promise<void> => {
    const record = recordFile(file);
    for (let left = count; left > 0; left -= 1) await record.add(run);
  };
  const change = async (edit: (lines: string[]) => void): Promise<void> => {
    const lines = (await readFile(file, "utf8")).split("\n");
    edit(lines);
    await writeFile(file, lines.join("\n"));
  };

  it("is continued by the next program, and by several at once", async () => {
    await recordFile(file).begin();
    expect(await verifyRecord(file)).toMatchObject({ valid: true, count: 0 });
    await add(2);
    await Promise.all([add(5), add(5), add(5)]);
    expect(await verifyRecord(file)).toMatchObject({ valid: true, count: 17, torn: [] });
  });

  it("shows that a line was changed, removed, added or moved, and which", async () => {
    await add(5);
    const whole = await readFile(file);
    await change((lines) => {
      lines[1] = (lines[1] ?? "").replace("AnExecutor", "Another");
    });
    expect(await verifyRecord(file)).toMatchObject({ valid: false, line: 3 });
    await writeFile(file, whole);
    await change((lines) => lines.splice(2, 1));
    expect(await verifyRecord(file)).toMatchObject({ valid: false, line: 3 });
    await writeFile(file, whole);
    await change((lines) => lines.splice(1, 0, "{}"));
    expect(await verifyRecord(file)).toMatchObject({ valid: false, line: 2 });
    await writeFile(file, whole);
    await change((lines) => lines.splice(1, 0, ...lines.splice(2, 1)));
    expect(await verifyRecord(file)).toMatchObject({ valid: false, line: 2 });
  });

  it("tells of a line that a program was writing when it died, and goes on after it", async () => {
    await add(2);
    const { length } = await readFile(file);
    await truncate(file, length - 20);
    expect(await verifyRecord(file)).toMatchObject({ valid: false, line: 2 });
    await add(1);
    await appendFile(file, '{"version":1,"seq"');
    await add(2);
    expect(await verifyRecord(file)).toMatchObject({ valid: true, count: 4, torn: [2, 4] });
    await change((lines) => {
      lines[1] += " ";
    });
    expect(await verifyRecord(file)).toMatchObject({ valid: false, line: 3 });
  });

  it("has lines of bounded size, and says what was left out", async () => {
    const created = Array.from({ length: 10_000 }, (_, index) => `${index}\u0000`.padEnd(100));
    const blocks = Array.from({ length: 10_000 }, () => ({ language: "\u0001".repeat(100_000), sha256: "" }));
    await recordFile(file).add({
      ...run,
      blocks,
      error: "\u0001".repeat(10_000),
      changes: { created, changed: created, deleted: created, risky: [] },
    });
    const line = await readFile(file, "utf8");
    expect(line.length).toBeLessThan(131_072);
    expect(JSON.parse(line)).toMatchObject({
      cut: { "changes.created": expect.any(Number), blocks: expect.any(Number) },
    });
    expect(await verifyRecord(file)).toMatchObject({ valid: true, count: 1 });
  });

  it("goes on after an empty line, which the next line names", async () => {
    await add(2);
    await appendFile(file, "\n\n");
    await add(2);
    expect(await verifyRecord(file)).toMatchObject({ valid: true, count: 4, torn: [3] });
  });

  it("goes on after a first line that is not complete", async () => {
    await writeFile(file, '{"version":1,"seq":1,"time":"2026');
    await add(2);
    expect(await verifyRecord(file)).toMatchObject({ valid: true, count: 2, torn: [1] });
  });

  it.each(["Dear diary", "\n", "SECRET=1\nOTHER=2", '{\n  "name": "x"\n}'])(
    "does not write to another kind of file: %j",
    async (content) => {
      await writeFile(file, content);
      await expect(recordFile(file).add(run)).rejects.toThrow(/another kind of file/);
      expect(await readFile(file, "utf8")).toBe(content);
    },
  );

  it("refuses another kind of file, and a directory", async () => {
    await writeFile(file, "Dear diary,\n");
    await expect(recordFile(file).begin()).rejects.toThrow(/another kind of file/);
    await expect(recordFile(directory).begin()).rejects.toThrow(/cannot be continued/);
    expect(await readFile(file, "utf8")).toBe("Dear diary,\n");
  });

  it("takes over the lock of a program that was killed", async () => {
    const child = spawn(process.execPath, ["-e", ""]);
    await once(child, "exit");
    await writeFile(`${file}.lock`, `${child.pid} ${hostname()} x`);
    await Promise.all([add(2), add(2)]);
    expect(await verifyRecord(file)).toMatchObject({ valid: true, count: 4 });
    await writeFile(`${file}.lock`, "");
    const longAgo = new Date(Date.now() - 60_000);
    await utimes(`${file}.lock`, longAgo, longAgo);
    await add(1);
    expect(await verifyRecord(file)).toMatchObject({ valid: true, count: 5 });
  });

  it.runIf(process.platform === "linux")(
    "takes over the lock of a program whose number another one has now",
    async () => {
      await writeFile(`${file}.lock`, `${process.pid} ${hostname()} 1 x`);
      await add(1);
      expect(await verifyRecord(file)).toMatchObject({ valid: true, count: 1 });
    },
  );

  it.skipIf(process.platform === "win32")("is not held up for ever by what is in the lock's place", async () => {
    // The wait would take ten seconds each time.
    let time = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => (time += 2000));
    onTestFinished(() => clock.mockRestore());
    await promisify(execFile)("mkfifo", [`${file}.lock`]);
    await expect(recordFile(file).begin()).rejects.toThrow(/in use/);
    await rm(`${file}.lock`);
    const later = new Date(Date.now() + 1_000_000);
    await writeFile(`${file}.lock`, `4194305 ${hostname()} x`);
    await writeFile(`${file}.lock.remove`, "");
    await utimes(`${file}.lock.remove`, later, later);
    await expect(recordFile(file).begin()).rejects.toThrow(/in use/);
  });
});
