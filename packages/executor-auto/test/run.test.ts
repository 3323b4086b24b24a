import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BackendName, needs } from "@fenced/test-support";
import { machine, type MachineKind, machineKinds } from "@fenced/test-support/machines";
import { describe, expect, it, onTestFinished } from "vitest";
import { findCode } from "../src/cli/find-code.ts";
import { runCommand } from "../src/cli/run-command.ts";
import { runNode } from "./support.ts";

const cli = "../src/cli.ts";

/** A Markdown text with these blocks: a language and code each. */
function markdown(...blocks: readonly (readonly [language: string, code: string])[]): string {
  return blocks.map(([language, code]) => `Text.\n\n\`\`\`${language}\n${code}\n\`\`\`\n`).join("\n");
}

describe("fenced run", () => {
  it("runs the blocks in order, and exits with the code of the one that fails", async () => {
    const text = markdown(
      ["python", "import sys\nprint('one')\nprint('two', file=sys.stderr)"],
      ["json\u001b]0;title\u0007", "{}"],
      ["python", "raise SystemExit(7)"],
      ["python", "print('never')"],
    );
    const { exitCode, stdout, stderr } = await runNode(cli, ["run", "-", "--executor", "wasm"], {}, text).outcome;
    expect(exitCode).toBe(7);
    expect(stdout).toBe("one\n");
    expect(stderr).toBe(
      "The code runs in an interpreter in WebAssembly.\nNot run: blocks in json.\ntwo\nBlock 2 of 3 failed; the blocks after it were not run.\n",
    );
  });

  it("fails if no fence has the languages, and names one that lacks them", async () => {
    const env = await machine("wasm");
    const { exitCode, stdout, stderr } = await runNode(cli, ["run", "-"], env, markdown(["bash", "echo 1"])).outcome;
    expect(exitCode).toBe(125);
    expect(stdout).toBe("");
    expect(stderr).toContain("No fence could be opened");
    expect(stderr).toContain("- WebAssembly: WebAssembly does not support bash here. Use another fence.");
  });

  it("runs nothing without a fence if this machine lacks a language", async () => {
    const text = markdown(["javascript", "console.log(1)"], ["python", "print(2)"]);
    const env = await machine("wasm");
    const { exitCode, stdout, stderr } = await runNode(cli, ["run", "-", "--executor", "local", "-q"], env, text)
      .outcome;
    expect([exitCode, stdout]).toEqual([125, ""]);
    expect(stderr).toBe("This machine does not support python here. Install it, or use a fence that has it.\n");
  });

  it.each([
    [["ru", "answer.md"], 2, "All options: fenced --help\n"],
    [["run"], 2, "All options: fenced run --help\n"],
    [
      ["run", "-", "-q", "--executor", "local", "--work-dir", process.execPath],
      125,
      "set --work-dir to a directory.\n",
    ],
  ])("says what to do after %j", async (words, code, end) => {
    const text = markdown(["javascript", "console.log(1)"]);
    const { exitCode, stderr } = await runNode(cli, words, {}, text).outcome;
    expect([exitCode, stderr.endsWith(end)]).toEqual([code, true]);
  });

  it.each([
    [["--image", "", "--executor", "docker"], "--image is empty. It must not be empty.\n"],
    [
      ["--allow", "https://a.test"],
      "'https://a.test' is invalid. It must be a host name or an address, without `https://`",
    ],
    [["--work-dir", "~/a", "--executor", "local", "-q"], '--work-dir is "~/a"'],
  ])("names its own options in errors: %j", async (options, words) => {
    const text = markdown(["javascript", "console.log(1)"]);
    const { exitCode, stderr } = await runNode(cli, ["run", "-", ...options], {}, text).outcome;
    expect(exitCode).toBe(2);
    expect(stderr).toContain(words);
    expect(stderr).not.toMatch(/`\w+`|openExecutor/);
  });

  it("passes options on, and exits with 124 after a timeout", async () => {
    const text = markdown(["python", "import os\nprint(os.environ['A'], flush=True)\nwhile True: pass"]);
    const args = ["run", "-", "--executor", "wasm", "--timeout-ms", "500", "--env", "A=b=c", "--quiet"];
    const { exitCode, stdout, stderr } = await runNode(cli, args, {}, text).outcome;
    expect([exitCode, stdout]).toEqual([124, "b=c\n"]);
    expect(stderr).toBe("Block 1 of 1 timed out and was killed.\n");
  });

  it("prints the program's output, and kills all its processes on Ctrl+C", needs("bubblewrap", "bash"), async () => {
    const marker = `8765${process.pid}`;
    const text = markdown(["bash", `echo started\nsleep ${marker} &\nsleep ${marker}`]);
    const { child, outcome, said } = runNode(cli, ["run", "-", "--executor", "os-sandbox"], {}, text);
    await said("started");
    await expect.poll(() => countProcesses(marker), { timeout: 60_000 }).toBe(2);
    child.kill("SIGINT");
    const { exitCode, stdout } = await outcome;
    expect([exitCode, stdout]).toEqual([130, "started\n"]);
    expect(await countProcesses(marker)).toBe(0);
  });

  it("runs without a fence if requested, and warns about it", needs("bash"), async () => {
    const text = markdown(["sh", "echo here"]);
    const { exitCode, stdout, stderr } = await runNode(cli, ["run", "-", "--executor", "local"], {}, text).outcome;
    expect([exitCode, stdout]).toEqual([0, "here\n"]);
    expect(stderr).toBe("Warning: the code runs on this machine without a fence. It can do everything that you can.\n");
  });

  it("lets the code reach the allowed hosts and no others", needs("bubblewrap", "python3"), async () => {
    const code = `import urllib.request
for name in ("first", "second", "third"):
    try: urllib.request.urlopen(f"http://{name}.invalid/")
    except OSError as error: print(error.code)`;
    const words = [
      "run",
      "-",
      "-q",
      "--executor",
      "os-sandbox",
      "--allow",
      "first.invalid",
      "--allow",
      "second.invalid",
      "--work-dir",
      await temporaryDirectory(),
    ];
    const { exitCode, stdout } = await runNode(cli, words, {}, markdown(["python", code])).outcome;
    // Names in "invalid" have no address: 502; not allowed: 403.
    expect([exitCode, stdout]).toEqual([0, "502\n502\n403\n"]);
  });

  it.each<[string[], string]>([
    [[], "missing required argument 'file'"],
    [["/nowhere.md"], "Cannot read /nowhere.md: ENOENT"],
    [["LICENSE"], "There is no code to run in LICENSE."],
    [["f", "--executor", "moon"], "Allowed choices are auto, docker, os-sandbox, wasm, local."],
    [["f", "--executor", "wasm", "--image", "i"], "--image needs --executor docker or auto"],
    [["f", "--executor", "local", "--network", "none"], "--network needs a fence"],
    [["f", "--executor", "local", "--allow", "example.com"], "--allow needs a fence"],
    [["f", "--network", "open", "--allow", "example.com"], "cannot be used with"],
    [["f", "--executor", "local", "--memory-bytes", "99999999"], "--memory-bytes needs a fence"],
    [["f", "--timeout-ms", "1s"], "whole number, at least 1"],
    [["f", "--env", "A"], "Write it as NAME=value."],
    [["f", "--lang", "x"], "unknown option '--lang'"],
    [["f", "--executer", "local"], "(Did you mean --executor?)"],
  ])("rejects %j with the reason", async (args, words) => {
    const command = runCommand(new AbortController().signal)
      .configureOutput({ writeErr: () => undefined })
      .exitOverride();
    await expect(command.parseAsync(args, { from: "user" })).rejects.toThrow(words);
  });
});

const places = {
  docker: "a Docker or Podman container",
  "os-sandbox": "an OS sandbox",
  wasm: "an interpreter in",
} as const;
const kinds = Object.entries(machineKinds) as [MachineKind, readonly BackendName[]][];
describe.each(kinds)("on a machine whose strongest fence is %s, fenced run", (kind, backends) => {
  it("opens it, by default and by name", needs(...backends), async () => {
    const env = await machine(kind);
    const options = ["--total-timeout-ms", "50000", "--memory-bytes", "268435456"];
    for (const chosen of [
      [],
      ["--executor", "auto"],
      ["--executor", kind, ...(kind === "wasm" ? [] : ["--network", "open"])],
    ]) {
      const image = kind === "docker" || !chosen.includes(kind) ? ["--image", "fenced-test:python"] : [];
      const words = ["run", "-", ...chosen, ...image, ...options];
      const { exitCode, stdout, stderr } = await runNode(cli, words, env, markdown(["python", "print(6 * 7)"])).outcome;
      expect([exitCode, stdout]).toEqual([0, "42\n"]);
      expect(stderr).toContain(`The code runs in ${places[kind]}`);
    }
  });
});

describe("the code in a text", () => {
  it("is every closed block in a known language", () => {
    const text = `${markdown(["Py", "1"], ["", "x"], ["text", "x"], ["shell", "2"])}\n\`\`\`python\nprint(`;
    expect(findCode(text)).toEqual({
      blocks: [
        { language: "Py", code: "1" },
        { language: "shell", code: "2" },
      ],
      languages: ["python", "sh"],
      notes: [
        "Not run: blocks in no language, text.",
        "Not run: a block without a closing fence, which may be incomplete.",
      ],
    });
  });
});

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "fenced-run-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

/** How many processes of this machine have the text in their arguments. */
async function countProcesses(text: string): Promise<number> {
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(processes.map((id) => readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "")));
  return lines.filter((line) => line.includes(text)).length;
}
