import { access, chmod, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CodeExecutor } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { WasmCodeExecutor } from "@fenced/executor-wasm";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  type SkillScriptRequest,
  type SkillTool,
  type Skills,
  skillsFrom,
  type SkillToolsOptions,
} from "../src/index.ts";
import { counting, folderWith, skillDocument, writeFiles } from "./support/skill-folder.ts";

async function read(folder: string): Promise<Skills> {
  const skills = await skillsFrom(folder);
  onTestFinished(() => skills[Symbol.asyncDispose]());
  return skills;
}

function stopLater<Executor extends CodeExecutor>(executor: Executor): Executor {
  onTestFinished(() => executor[Symbol.asyncDispose]());
  return executor;
}

const places: readonly [string, ReturnType<typeof needs>, (skills: Skills) => CodeExecutor][] = [
  ["this host", needs("python3", "bash"), () => new LocalCommandLineCodeExecutor()],
  [
    "an OS sandbox",
    needs("python3", "bash", "bubblewrap"),
    ({ directory }) => new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", readable: [directory] }),
  ],
  [
    "a container",
    needs("docker"),
    ({ directory }) =>
      new DockerCommandLineCodeExecutor({
        image: "fenced-test:python",
        network: "none",
        extraVolumes: { [directory]: { bind: "/skills", mode: "ro" } },
      }),
  ],
];

function toolOf(skills: Skills, name: string, executor?: CodeExecutor, options?: SkillToolsOptions): SkillTool {
  const tool = skills.tools(executor, options)[name];
  if (!tool) throw new Error(`There is no tool ${name}`);
  return tool;
}

const always = (): { approved: boolean } => ({ approved: true });

describe("The tools that read", () => {
  it("give the instructions, the list of files, and files in parts", async () => {
    const skills = await read(await folderWith({ ...counting, "counting/references/long.txt": "abc😀".repeat(5) }));
    expect(Object.keys(skills.tools())).toEqual(["load_skill", "read_skill_file"]);
    const tools = skills.tools(undefined, { maxCharacters: 10_000 });
    expect(tools["load_skill"]?.description).toContain("- counting: Counts words: in texts, or in files.");
    const text = await tools["load_skill"]?.execute({ name: "counting" }, {});
    expect(text).toContain("# How\n\nRun the script.");
    expect(text).toContain("- references/how.md (31 bytes)");
    const short = toolOf(skills, "read_skill_file", undefined, { maxCharacters: 16 });
    const part = await short.execute({ name: "counting", path: "references/long.txt" }, {});
    expect(part).toBe("abc😀abc😀abc😀a\n[9 more characters: continue at offset 16]");
    expect(await short.execute({ name: "counting", path: "./references/long.txt", offset: 16 }, {})).toBe("bc😀abc😀");
  });

  it("leave the catalogue to the prompt if asked to", async () => {
    const skills = await read(await folderWith(counting));
    expect(toolOf(skills, "load_skill", undefined, { catalogue: false }).description).not.toContain("counting");
  });

  it.each([
    [{ name: "other" }, "not valid"],
    [{ name: "counting", path: "../../etc/passwd" }, "has no file"],
    [{ name: "counting", path: "/etc/passwd" }, "has no file"],
    [{ name: "counting", path: "references" }, "has no file"],
    [{ name: "counting", path: "picture.png" }, "is not text"],
  ])("refuse %j", async (input, why) => {
    const skills = await read(await folderWith({ ...counting, "counting/picture.png": Uint8Array.of(0x89, 0, 0xff) }));
    await expect(toolOf(skills, "read_skill_file").execute(input, {})).rejects.toThrow(why);
  });

  it("show what a text hides", async () => {
    const document = `${skillDocument("sorting")}Sort.\u{e0049}\u{e0067}\u{200b}\n`;
    const skills = await read(await folderWith({ "sorting/SKILL.md": document }));
    expect(await toolOf(skills, "load_skill").execute({ name: "sorting" }, {})).toContain(
      String.raw`Sort.\u{e0049}\u{e0067}\u{200b}`,
    );
  });

  it("say without a path of this host that a skill or its copy is gone", async () => {
    const folder = await folderWith(counting);
    const skills = await read(folder);
    const load = toolOf(skills, "load_skill");
    const told = (): Promise<string> => load.execute({ name: "counting" }, {}).then(String, String);
    expect(await told()).toContain("# ");
    await rm(join(skills.directory, ".."), { recursive: true });
    const gone = await told();
    expect(gone).toMatch(/The files of the skill counting cannot be read or copied \(ENOENT\)/);
    await rm(join(folder, "counting"), { recursive: true });
    expect(`${gone}${await told()}`).not.toContain(tmpdir());
  });

  it("see a changed file at once, and refuse a skill that became wrong", async () => {
    const folder = await folderWith(counting);
    const skills = await read(folder);
    const tool = toolOf(skills, "load_skill");
    await writeFiles(folder, { "counting/SKILL.md": skillDocument("counting", "New.") });
    expect(await tool.execute({ name: "counting" }, {})).toContain("description: New.");
    expect(skills.catalogue()).toContain("- counting: New.");
    await writeFiles(folder, { "counting/SKILL.md": skillDocument("else") });
    await expect(tool.execute({ name: "counting" }, {})).rejects.toThrow("is named else");
  });
});

describe.each(places)("run_skill_script in %s", (place, needed, create) => {
  const directory = place === "a container" ? { directory: "/skills" } : {};

  it("runs scripts in the workspace, with arguments and input", needed, async () => {
    const skills = await read(await folderWith(counting));
    const executor = stopLater(create(skills));
    const tool = toolOf(skills, "run_skill_script", executor, { approve: always, ...directory });
    const args = ["it's", "two words", "$HOME", ""];
    expect(await tool.execute({ name: "counting", script: "scripts/count.py", args, stdin: "a b c" }, {})).toBe(
      `3 ["it's", 'two words', '$HOME', ''] True\n`,
    );
    expect(Buffer.from(await executor.files.read("count.txt")).toString()).toBe("3");
    expect(await tool.execute({ name: "counting", script: "scripts/shell.sh", args }, {})).toBe(
      "it's|two words|$HOME||",
    );
  });

  it("ends scripts, and shows them a read-only skill", needed, async () => {
    const skills = await read(await folderWith(counting));
    const executor = stopLater(create(skills));
    const tool = toolOf(skills, "run_skill_script", executor, { approve: always, ...directory });
    const impatient = toolOf(skills, "run_skill_script", executor, { approve: always, timeoutMs: 2000, ...directory });
    expect(await impatient.execute({ name: "counting", script: "scripts/forever.sh" }, {})).toContain("timed out");
    // Root can write to every file of its own host.
    const printed = place === "this host" ? "" : "could not write";
    expect(await tool.execute({ name: "counting", script: "scripts/vandal.sh" }, {})).toContain(printed);
    expect(await tool.execute({ name: "counting", script: "scripts/shell.sh" }, {})).toBe("|");
  });
});

describe("run_skill_script", () => {
  it("asks once for each content, and again after a change of any file", needs("bash"), async () => {
    const folder = await folderWith(counting);
    const skills = await read(folder);
    const executor = stopLater(new LocalCommandLineCodeExecutor());
    const requests: SkillScriptRequest[] = [];
    const tool = toolOf(skills, "run_skill_script", executor, {
      approve: (request) => {
        requests.push(request);
        return { approved: true };
      },
    });
    const run = (): Promise<string> => tool.execute({ name: "counting", script: "scripts/shell.sh", args: ["x"] }, {});
    await Promise.all([run(), run()]);
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({ script: "scripts/shell.sh", args: ["x"], changed: false });
    await writeFile(join(folder, "counting/references/how.md"), "Changed.\n");
    expect(await run()).toBe("x|");
    expect(requests.map(({ changed }) => changed)).toEqual([false, true]);
    expect(requests[1]?.skill.digest).not.toBe(requests[0]?.skill.digest);
  });

  it("asks the user of each call, whatever another one approved", needs("bash"), async () => {
    const skills = await read(await folderWith(counting));
    const executor = stopLater(new LocalCommandLineCodeExecutor());
    const tool = toolOf(skills, "run_skill_script", executor);
    const input = { name: "counting", script: "scripts/shell.sh", args: ["ran"] };
    let asked = 0;
    const approve = (): { approved: boolean } => ({ approved: (asked += 1) > 0 });
    expect(await tool.execute(input, { approve })).toBe("ran|");
    expect(await tool.execute(input, { approve })).toBe("ran|");
    expect(asked).toBe(1);
    const refuse = (): { approved: boolean } => ({ approved: false });
    expect(await tool.execute(input, { approve: refuse })).toBe("The script did not run: not approved.");
    expect(await tool.execute(input, {})).toContain("Nobody can be asked");
  });

  it("does not run what was not approved, or what nobody can be asked about", needs("bash"), async () => {
    const skills = await read(await folderWith(counting));
    const executor = stopLater(new LocalCommandLineCodeExecutor());
    const input = { name: "counting", script: "scripts/shell.sh", args: ["ran"] };
    const refuse = (): { approved: boolean; reason: string } => ({ approved: false, reason: "Ask Ann." });
    const refused = toolOf(skills, "run_skill_script", executor, { approve: refuse });
    expect(await refused.execute(input, {})).toBe("The script did not run: not approved. Ask Ann.");
    const digest = skills.all[0]?.digest ?? "";
    const alone = await toolOf(skills, "run_skill_script", executor).execute(input, {});
    expect(alone).toBe(`The script did not run: not approved. Nobody can be asked. Its digest is ${digest}.`);
    const reviewed = toolOf(skills, "run_skill_script", executor, { approved: [digest] });
    expect(await reviewed.execute(input, {})).toBe("ran|");
    const failing = toolOf(skills, "run_skill_script", executor, {
      approve: () => Promise.reject(new Error("no terminal")),
    });
    await expect(failing.execute(input, {})).rejects.toThrow("no terminal");
  });

  it("runs what was approved, even if the script is swapped while the question is open", needs("bash"), async () => {
    const folder = await folderWith(counting);
    const skills = await read(folder);
    const executor = stopLater(new LocalCommandLineCodeExecutor());
    const tool = toolOf(skills, "run_skill_script", executor, {
      approve: async () => {
        await writeFiles(folder, { "counting/scripts/shell.sh": "echo swapped\n" });
        return { approved: true };
      },
    });
    expect(await tool.execute({ name: "counting", script: "scripts/shell.sh", args: ["x"] }, {})).toBe("x|");
  });

  it("runs what was approved, even if code has changed the copy", needs("bash"), async () => {
    const skills = await read(await folderWith(counting));
    const executor = stopLater(new LocalCommandLineCodeExecutor());
    const tool = toolOf(skills, "run_skill_script", executor, { approve: always });
    const input = { name: "counting", script: "scripts/shell.sh", args: ["x"] };
    await tool.execute(input, {});
    const copy = join(skills.directory, (skills.all[0]?.digest ?? "").slice(7), "counting/scripts/shell.sh");
    await access(copy);
    await chmod(copy, 0o644);
    await writeFile(copy, "echo swapped\n");
    expect(await tool.execute(input, {})).toBe("x|");
  });

  it("runs what was approved, even if code changes the copy while the question is open", needs("bash"), async () => {
    const folder = await folderWith(counting);
    const skills = await read(folder);
    const executor = stopLater(new LocalCommandLineCodeExecutor());
    const input = { name: "counting", script: "scripts/shell.sh", args: ["x"] };
    const swapped = { "counting/scripts/shell.sh": "echo swapped\n" };
    const changing = (andSource: boolean) => async () => {
      const [copies = ""] = await readdir(skills.directory);
      const script = join(skills.directory, copies, "counting/scripts/shell.sh");
      await chmod(script, 0o755);
      await writeFile(script, "echo swapped\n");
      if (andSource) await writeFiles(folder, swapped);
      return { approved: true };
    };
    const tool = toolOf(skills, "run_skill_script", executor, { approve: changing(false) });
    expect(await tool.execute(input, {})).toBe("x|");
    const other = toolOf(skills, "run_skill_script", executor, { approve: changing(true) });
    await expect(other.execute(input, {})).rejects.toThrow("were changed after they had been approved");
  });

  it("does not wait for the question about another skill", needs("bash"), async () => {
    const skills = await read(
      await folderWith({ ...counting, "other/SKILL.md": skillDocument("other"), "other/run.sh": "" }),
    );
    const executor = stopLater(new LocalCommandLineCodeExecutor());
    const asking = new AbortController();
    const approve = ({ skill }: SkillScriptRequest): { approved: boolean } | Promise<never> =>
      skill.name === "counting" ? { approved: true } : new Promise(() => {});
    const tool = toolOf(skills, "run_skill_script", executor, { approve });
    const input = { name: "counting", script: "scripts/shell.sh", args: ["x"] };
    await tool.execute(input, {});
    const waiting = tool.execute({ name: "other", script: "run.sh" }, { signal: asking.signal });
    expect(await tool.execute(input, {})).toBe("x|");
    asking.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });

  it("returns what a failed script printed, even if it has removed its skill", needs("bash"), async () => {
    const script = 'chmod -R u+w "$SKILL_DIR"; rm -r "$SKILL_DIR"; echo kept; exit 3\n';
    const skills = await read(await folderWith({ ...counting, "counting/scripts/fails.sh": script }));
    const executor = stopLater(new LocalCommandLineCodeExecutor());
    const tool = toolOf(skills, "run_skill_script", executor, { approve: always });
    const text = await tool.execute({ name: "counting", script: "scripts/fails.sh" }, {});
    expect(text).toContain("kept");
    expect(text).toContain("3");
  });

  it("ends the script and the question when the call is aborted", needs("bash"), async () => {
    const skills = await read(await folderWith(counting));
    const executor = stopLater(new LocalCommandLineCodeExecutor());
    const input = { name: "counting", script: "scripts/forever.sh" };
    const asking = new AbortController();
    const asked = toolOf(skills, "run_skill_script", executor, {
      approve: () => {
        asking.abort(new Error("enough of asking"));
        return new Promise(() => {});
      },
    });
    await expect(asked.execute(input, { abortSignal: asking.signal })).rejects.toThrow("enough of asking");
    const running = new AbortController();
    const tool = toolOf(skills, "run_skill_script", executor, {
      approve: () => {
        setTimeout(() => running.abort(new Error("enough of running")), 300);
        return { approved: true };
      },
    });
    await expect(tool.execute(input, { signal: running.signal })).rejects.toThrow("enough of running");
  });

  it("copies the files where no directory can be shared", needs("bash", "python3"), async () => {
    const skills = await read(await folderWith(counting));
    const executor = stopLater(new LocalCommandLineCodeExecutor());
    const tool = toolOf(skills, "run_skill_script", executor, { approve: always, copy: true });
    const input = { name: "counting", script: "scripts/count.py", stdin: "a b" };
    expect(await tool.execute(input, {})).toBe("2 [] True\n");
    await tool.execute({ name: "counting", script: "scripts/vandal.sh" }, {});
    expect(await tool.execute(input, {})).toBe("2 [] True\n");
  });

  it("runs Python without a shell, in WebAssembly", async () => {
    const skills = await read(await folderWith(counting));
    const executor = stopLater(new WasmCodeExecutor());
    const tool = toolOf(skills, "run_skill_script", executor, { approve: always, copy: true });
    const args = ['a"\\\n', "😀"];
    expect(await tool.execute({ name: "counting", script: "scripts/count.py", args, stdin: "a b" }, {})).toBe(
      `2 ['a"\\\\\\n', '😀'] True\n`,
    );
    await expect(tool.execute({ name: "counting", script: "scripts/shell.sh" }, {})).rejects.toThrow("is for sh");
  });

  it("says that the executor does not see the skills", needs("bubblewrap", "bash"), async () => {
    const skills = await read(await folderWith(counting));
    const executor = stopLater(new LocalCommandLineCodeExecutor({ isolation: "os-sandbox" }));
    const tool = toolOf(skills, "run_skill_script", executor, { approve: always });
    await expect(tool.execute({ name: "counting", script: "scripts/shell.sh" }, {})).rejects.toThrow(
      "does not see the directory of the skills",
    );
  });

  it.each([
    ["a file that is no script", { script: "SKILL.md" }, "not known which program runs"],
    ["a file of another skill", { script: "../other.sh" }, "has no file"],
    ["NUL in an argument", { script: "scripts/shell.sh", args: ["\0"] }, "NUL"],
    ["long arguments", { script: "scripts/shell.sh", args: ["x".repeat(40_000)] }, "more than 32768"],
  ])("refuses %s", async (_, input, why) => {
    const skills = await read(await folderWith(counting));
    const executor = stopLater(new LocalCommandLineCodeExecutor());
    const tool = toolOf(skills, "run_skill_script", executor, { approve: always });
    await expect(tool.execute({ name: "counting", ...input }, {})).rejects.toThrow(why);
  });

  it("rejects unknown options", async () => {
    const skills = await read(await folderWith(counting));
    expect(() => skills.tools(undefined, { aprove: always } as SkillToolsOptions)).toThrow("approve");
  });

  it("leaves nothing behind", async () => {
    const skills = await skillsFrom(await folderWith(counting));
    await skills[Symbol.asyncDispose]();
    await expect(access(skills.directory)).rejects.toThrow("ENOENT");
  });
});
