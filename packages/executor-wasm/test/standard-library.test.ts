import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { WasmCodeExecutor } from "../src/index.ts";

const minutes = { timeout: 240_000 };
const python = (code: string) => [{ language: "python", code }];

describe("the standard library of Python", minutes, () => {
  it("lacks the modules that the README names, and no others", async () => {
    const readme = readFileSync(path.join(import.meta.dirname, "../README.md"), "utf8");
    const [, list = ""] = /except these modules: ([^]*?), and those of Windows/.exec(readme) ?? [];
    const named = [...list.replaceAll(/\([^)]*\)/g, "").matchAll(/`([^`]+)`/g)].map(([, name]) => name);
    await using executor = new WasmCodeExecutor();
    const code = `
import importlib.util, sys
windows = {"msvcrt", "nt", "winreg", "winsound"}
names = [each for each in sys.stdlib_module_names if not each.startswith("_") and each not in windows]
print(*sorted(each for each in names if importlib.util.find_spec(each) is None))
`;
    const { output } = await executor.executeCodeBlocks(python(code));
    expect(output.trim().split(" ")).toEqual(named);
  });

  it("knows UTC and one user, and says how to get other time zones", async () => {
    await using executor = new WasmCodeExecutor();
    const code = `
import datetime, getpass, grp, os, pwd
from zoneinfo import ZoneInfo
print(datetime.datetime(2024, 1, 1, tzinfo=ZoneInfo("UTC")), ZoneInfo("Etc/UTC").tzname(datetime.datetime(2024, 1, 1)))
print(getpass.getuser(), pwd.getpwuid(os.getuid()).pw_dir == os.path.expanduser("~"), grp.getgrnam("web_user").gr_mem)
ZoneInfo("Europe/Oslo")
`;
    const { stdout, stderr } = await executor.executeCodeBlocks(python(code));
    expect(stdout).toBe("2024-01-01 00:00:00+00:00 UTC\nweb_user True []\n");
    expect(stderr).toContain('packages: { install: ["tzdata"] }');
    expect(stderr).not.toContain("loadPackage");
  });

  it("says in plain words that a program has aborted", async () => {
    await using executor = new WasmCodeExecutor();
    const result = await executor.executeCodeBlocks(python("import os\nprint('before')\nos.abort()"));
    expect(result).toMatchObject({ exitCode: 134, stateLost: true });
    expect(result.stdout).toMatch(/^before\n/);
    expect(result.stderr).toBe("Aborted\n");
    expect((await executor.executeCodeBlocks(python("6 * 7"))).output).toBe("42\n");
  });
});
