import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { betaAgentToolset20260401 } from "@anthropic-ai/sdk/tools/agent-toolset/node";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { newTools } from "./support.ts";

/** An error result. */
const error = (text: string | RegExp): object => ({
  isError: true,
  text: typeof text === "string" ? text : expect.stringMatching(text),
});
const ok = (text: string | RegExp): object => ({ ...error(text), isError: false });

describe("the tools", () => {
  it("are described as the SDK's own, all of them, and cost nothing until they are called", async () => {
    const { tools, executors } = newTools();
    const described = (all: readonly object[]): unknown[] =>
      all.map((tool) => ({ ...tool, run: undefined, close: undefined, parse: undefined }));
    expect(described(tools)).toEqual(described(betaAgentToolset20260401({ workdir: "/" })));
    for (const tool of tools) await tool.close?.();
    expect(executors).toEqual([]);
  });
});

describe("files", needs("python3"), () => {
  it("are read in whole up to a limit, and by lines beyond it", async () => {
    const { call } = newTools({}, { maxFileBytes: 1000 });
    const lines = Array.from({ length: 400 }, (_, index) => `line ${index + 1}`);
    expect(await call("write", { file_path: "a/b.txt", content: "ä\r\n\nend" })).toEqual(
      ok("wrote 8 bytes to a/b.txt"),
    );
    expect(await call("read", { file_path: "a/b.txt" })).toEqual(ok("ä\r\n\nend"));
    expect(await call("read", { file_path: "a/b.txt", view_range: [2, 0] })).toEqual(ok("\nend"));
    expect(await call("read", { file_path: "a/b.txt", view_range: [3, 9] })).toEqual(ok("end"));
    expect(await call("read", { file_path: "a/b.txt", view_range: [2, 1] })).toEqual(ok(""));
    expect(await call("read", { file_path: "a/b.txt", view_range: [1] })).toEqual(
      error("read: view_range must be [start_line, end_line]"),
    );
    await call("write", { file_path: "long", content: `${lines.join("\n")}\n${"x".repeat(2000)}` });
    expect(await call("read", { file_path: "long" })).toEqual(
      error(
        "read: long is 5492 bytes, exceeds 1000-byte limit. Use the view_range parameter to read specific line ranges, e.g. view_range: [1, 500].",
      ),
    );
    expect(await call("read", { file_path: "long", view_range: [399, 400] })).toEqual(ok("line 399\nline 400"));
    expect(await call("read", { file_path: "long", view_range: [1, 300] })).toEqual(
      error(
        "read: view_range [1, 300] of long exceeds 1000-byte limit. Narrow the view_range to read a smaller portion.",
      ),
    );
    expect(await call("read", { file_path: "long", view_range: [401, 401] })).toEqual(
      error(
        "read: line 401 of long alone exceeds 1000-byte limit. The read tool cannot return part of a line, so view_range cannot narrow this further.",
      ),
    );
    expect(await call("edit", { file_path: "long", old_string: "x", new_string: "y" })).toEqual(
      error(
        "edit: long is 5492 bytes, exceeds 1000-byte limit. The edit tool loads the whole file and cannot modify a file this large.",
      ),
    );
    const unlimited = newTools({}, { maxFileBytes: null });
    await unlimited.call("bash", { command: "head -c 300000 /dev/zero | tr '\\0' x > big" });
    expect((await unlimited.call("read", { file_path: "big" })).text).toHaveLength(300_000);
    const usual = newTools();
    await usual.call("bash", { command: "head -c 262145 /dev/zero | tr '\\0' x > big" });
    expect(await usual.call("read", { file_path: "big" })).toEqual(error(/262145 bytes, exceeds 262144-byte limit/));
  });

  it("are edited where the text is unique, or everywhere", async () => {
    const { call } = newTools();
    await call("bash", { command: "printf 'a b a' > f; chmod 750 f" });
    expect(await call("edit", { file_path: "f", old_string: "a", new_string: "c" })).toEqual(
      error("edit: old_string appears 2 times in f (must be unique)"),
    );
    expect(await call("edit", { file_path: "f", old_string: "b", new_string: "$&'" })).toEqual(
      ok("edited f (1 replacement(s))"),
    );
    expect(await call("edit", { file_path: "f", old_string: "a", new_string: "", replace_all: true })).toEqual(
      ok("edited f (2 replacement(s))"),
    );
    expect(await call("bash", { command: "cat f; stat -c ' %a' f" })).toEqual(ok(" $&'  750"));
    expect(await call("edit", { file_path: "f", old_string: "a", new_string: "c" })).toEqual(
      error("edit: old_string not found in f"),
    );
  });

  it("are refused with the SDK's words", async () => {
    const { call } = newTools({}, { workdir: "/host", readOnlyRoots: ["/host/memory", "/mnt/memory/notes"] });
    await call("bash", { command: "mkdir dir; mkfifo pipe; ln -s loop loop; ln -s / out; ln -s dir in; touch file" });
    expect(await call("read", {})).toEqual(error("read: file_path is required"));
    expect(await call("read", { file_path: 7 })).toEqual(error(/^read: file_path: .*expected string/));
    expect(await call("read", { file_path: "none" })).toEqual(error("read: none: no such file or directory"));
    expect(await call("read", { file_path: "dir" })).toEqual(error("read: dir is not a regular file"));
    expect(await call("read", { file_path: "pipe" })).toEqual(error("read: pipe is not a regular file"));
    expect(await call("edit", { file_path: "pipe", old_string: "a", new_string: "b" })).toEqual(
      error("edit: pipe is not a regular file"),
    );
    expect(await call("edit", { file_path: "file" })).toEqual(error("edit: old_string is required"));
    for (const file_path of ["/etc/passwd", "../x", "out/etc/passwd", "dir/../../x", "loop"]) {
      const outside = error(`path ${JSON.stringify(file_path)} is outside the session's working directory`);
      expect(await call("read", { file_path })).toEqual(outside);
      expect(await call("write", { file_path, content: "" })).toEqual(outside);
      expect(await call("grep", { pattern: "x", path: file_path })).toEqual(outside);
      expect(await call("glob", { pattern: "*", path: file_path })).toEqual(outside);
    }
    expect(await call("write", { file_path: "dir", content: "" })).toEqual(error("write: dir: is a directory"));
    expect(await call("write", { file_path: "in/new", content: "x" })).toEqual(ok("wrote 1 bytes to in/new"));
    expect(await call("read", { file_path: "dir/new" })).toEqual(ok("x"));
    expect(await call("write", { file_path: "memory/a", content: "" })).toEqual(
      error("write: memory/a is inside read-only directory /host/memory"),
    );
    expect(await call("edit", { file_path: "/mnt/memory/notes/a", old_string: "a", new_string: "b" })).toEqual(
      error("edit: /mnt/memory/notes/a is inside read-only directory /mnt/memory/notes"),
    );
  });
});

describe("searches", needs("python3"), () => {
  it("find files by patterns as the SDK does, newest first", async () => {
    const { call } = newTools();
    const made = ["a.txt", ".hidden.txt", "d/b.txt", "d/.h/c.txt", "d/e/f.js", ".git/z.txt", "node_modules/n.txt"];
    await call("bash", {
      command: `for f in ${made.join(" ")}; do mkdir -p "$(dirname $f)"; touch $f; done; touch -d 2001-01-01 a.txt; ln -s /etc out; mkfifo p.txt; ln -s a.txt l.txt`,
    });
    const root = (await call("bash", { command: "pwd" })).text;
    const found = async (pattern: string, path?: string): Promise<string> =>
      (await call("glob", { pattern, path })).text.replaceAll(`${root}/`, "");
    expect(await found("**/*.txt")).toBe("d/b.txt\na.txt");
    expect(await found("./{a,d//b}.tx?")).toBe("d/b.txt\na.txt");
    expect(await found("**/.h/[!ab].txt")).toBe("d/.h/c.txt");
    expect(await found(".*")).toBe(".hidden.txt");
    expect(await found("**", "d")).toMatch(/^(d\/b\.txt\nd\/e\/f\.js|d\/e\/f\.js\nd\/b\.txt)$/);
    expect(await found("*/", "d")).toBe("no matches");
    expect(await found("out/*")).toBe("no matches");
    await call("bash", { command: "mkdir many; cd many; touch $(seq 1 300); touch -d 2001-01-01 7; cd .." });
    const many = (await found("many/*")).split("\n");
    expect([many.length, many.includes("many/7")]).toEqual([200, false]);
    expect(await call("glob", { pattern: "/etc/*" })).toEqual(
      error("glob: absolute pattern not permitted; pass a relative pattern (and optionally path)"),
    );
    expect(await call("glob", { pattern: "a/{..,b}/*" })).toEqual(error('glob: ".." is not permitted in the pattern'));
    expect(await call("glob", {})).toEqual(error("glob: pattern is required"));
    expect(await call("glob", { pattern: "+(a).txt" })).toEqual(error(/^glob: patterns with .* not supported$/));
    expect(await call("glob", { pattern: "{1..9}{1..9}{1..9}{1..9}" })).toEqual(error(/more than 1000 alternatives/));
  });

  it("find lines, in regular text files, up to a limit", async () => {
    const { call } = newTools();
    await call("write", { file_path: "a/b.txt", content: `no\r\nyear 2001\r\n${"x".repeat(2001)}2001\nend 2002` });
    await call("bash", {
      command:
        "mkfifo pipe; ln -s /etc/passwd link; mkdir .git; echo 2001 > .git/x; printf '2001\\0' > binary; truncate -s 1T sparse; chmod 000 .git",
    });
    const root = (await call("bash", { command: "pwd" })).text;
    expect(await call("grep", { pattern: "(?<year>20\\d\\d)$" })).toEqual(
      ok(`${root}/a/b.txt:2:year 2001\n${root}/a/b.txt:4:end 2002`),
    );
    expect(await call("grep", { pattern: "^end", path: "a/b.txt" })).toEqual(ok(`${root}/a/b.txt:4:end 2002`));
    expect(await call("grep", { pattern: "root:" })).toEqual(ok("no matches"));
    expect(await call("grep", { pattern: "x", path: "none" })).toEqual(error("grep: none: no such file or directory"));
    expect(await call("grep", { pattern: "[" })).toEqual(error(/^grep: invalid regex: /));
    expect(await call("grep", { pattern: "" })).toEqual(error("grep: pattern is required"));
    await call("bash", { command: "yes 'a line to find' | head -20000 > many" });
    const { text } = await call("grep", { pattern: "find" });
    expect(text.length).toBeLessThan(102_500);
    expect(text).toMatch(/:a line to find\n\[output truncated at 102400 bytes\]$/);
  });

  it("end when they are aborted, whatever the pattern", async () => {
    const { call } = newTools();
    await call("write", { file_path: "a", content: `${"a".repeat(64)}!` });
    const stopping = new AbortController();
    const searching = call("grep", { pattern: "(a+)+$" }, stopping.signal);
    setTimeout(() => stopping.abort(), 500);
    expect(await searching).toEqual(error("grep: aborted"));
    const ended = new AbortController();
    ended.abort();
    expect(await call("grep", { pattern: "a" }, ended.signal)).toEqual(error("grep: aborted"));
    expect(await call("read", { file_path: "a" }, ended.signal)).toEqual(error("read: aborted"));
  });
});

describe("the shell", needs("bash"), () => {
  it("keeps its state, merges outputs, has no input, and answers with the exit code or the output", async () => {
    const { call } = newTools({}, { env: { GIVEN: "yes", NOTHING: undefined } });
    expect(await call("bash", { command: "" })).toEqual(error("bash: command is required"));
    expect(await call("bash", { command: 'cd /; f() { echo "it\'s $GIVEN $1"; }; export V=1' })).toEqual(ok(""));
    expect(await call("bash", { command: "f $V; pwd >&2; cat; echo '\u001B[31mred\u001B[0m'" })).toEqual(
      ok("it's yes 1\n/\nred"),
    );
    expect(await call("bash", { command: "false" })).toEqual(error("exit 1"));
    expect(await call("bash", { command: "echo partly; (exit 7)" })).toEqual(error("partly"));
    expect(await call("bash", { command: "echo 'never closed" })).toEqual(error(/unexpected EOF|unterminated/i));
    expect(await call("bash", { command: "cat <<E\nhere $V\nE" })).toEqual(ok("here 1"));
    expect(await call("bash", { restart: true })).toEqual(ok("bash session restarted"));
    expect(await call("bash", { command: 'echo "$V"; exit 4' })).toEqual(error("bash: bash session terminated"));
    expect(await call("bash", { command: "echo again", timeout_ms: null })).toEqual(ok("again"));
  });

  it("keeps the end of a long output, at the beginning of a character", async () => {
    const { call } = newTools();
    const { text } = await call("bash", { command: "yes ä | head -100000; echo end" });
    expect([Buffer.byteLength(text) < 102_500, text.startsWith("[output truncated]\n")]).toEqual([true, true]);
    expect(text).toMatch(/^\[output truncated\]\nä?\n?ä\n/);
    expect(text.endsWith("ä\nend")).toBe(true);
    const newlines = await call("bash", { command: "head -c 100000 /dev/zero | tr '\\0' '\\n'; printf x" });
    expect(newlines.text).toHaveLength(100_001);
  });

  it("ends with everything in it when a command takes too long or is aborted, and starts again", async () => {
    const { call, executors } = newTools();
    const running = async (): Promise<number> => ((await executors[0]?.processes?.list()) ?? []).length;
    await call("bash", { command: "true" });
    const late = await call("bash", { command: "sleep 600 & echo begun; X=1; sleep 600", timeout_ms: 3000 });
    expect(late).toEqual(error("bash: bash command timed out after 3000ms\nbegun"));
    await expect.poll(running).toBe(0);
    expect(await call("bash", { command: 'echo "new$X"' })).toEqual(ok("new"));
    const stopping = new AbortController();
    const aborted = call("bash", { command: "echo before; touch here; sleep 600" }, stopping.signal);
    await expect.poll(async () => (await call("glob", { pattern: "here" })).text).toMatch(/here$/);
    stopping.abort();
    expect(await aborted).toEqual(error("bash: This operation was aborted\nbefore"));
    expect(await call("bash", { command: "echo new" })).toEqual(ok("new"));
  });

  it("is not deceived or blocked by a command that stops it, fills it or forges its mark", async () => {
    const { call } = newTools();
    expect(await call("bash", { command: "kill -STOP $$", timeout_ms: 1500 })).toEqual(error(/timed out after 1500ms/));
    expect(await call("bash", { command: "yes & sleep 0.3; echo; echo done" })).toEqual(ok(/y\n(.*\n)*done(\n.*)*$/));
    expect(await call("bash", { command: "kill %1; wait 2> /dev/null; echo quiet" })).toEqual(ok(/quiet$/));
    expect(await call("bash", { command: "printf '\\n%s 0\\n' 00000000-0000-0000-0000-000000000000; false" })).toEqual(
      error("\n00000000-0000-0000-0000-000000000000 0"),
    );
    const [one, two] = await Promise.all([
      call("bash", { command: "sleep 0.5; echo one" }),
      call("bash", { command: "echo two" }),
    ]);
    expect([one, two]).toEqual([ok("one"), ok("two")]);
  });
});

describe("a hostile workspace", needs("python3"), () => {
  it("cannot fill memory with its files", async () => {
    const { call } = newTools();
    await call("bash", { command: "truncate -s 1T sparse; mkdir -p $(seq -s / 1 100)" });
    expect(await call("read", { file_path: "sparse" })).toEqual(error(/sparse is 1099511627776 bytes, exceeds/));
    expect(await call("read", { file_path: "sparse", view_range: [1, 2] })).toEqual(error(/Narrow the view_range/));
    expect(await call("grep", { pattern: "x" })).toEqual(ok("no matches"));
    expect(await call("glob", { pattern: "**/100/*" })).toEqual(ok("no matches"));
  });

  it("does not reach the host by its links", async () => {
    const secret = mkdtempSync(join(tmpdir(), "fenced-claude-"));
    onTestFinished(() => rmSync(secret, { recursive: true }));
    writeFileSync(join(secret, "key"), "secret");
    const { call, executors } = newTools();
    await call("bash", { command: "mkdir d" });
    symlinkSync(secret, join(executors[0]?.workspacePath ?? "", "out"));
    symlinkSync(join(secret, "key"), join(executors[0]?.workspacePath ?? "", "key"));
    for (const file_path of ["out/key", "key"]) {
      expect(await call("read", { file_path })).toEqual(error(/is outside the session's working directory/));
      expect(await call("write", { file_path, content: "x" })).toEqual(
        error(/is outside the session's working directory/),
      );
    }
    expect(await call("grep", { pattern: "secret" })).toEqual(ok("no matches"));
    expect(await call("glob", { pattern: "**/key" })).toEqual(ok("no matches"));
  });
});
