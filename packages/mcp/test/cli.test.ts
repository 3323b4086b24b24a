import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { executorModel } from "../src/cli/executor-model.ts";
import { parseOptions } from "../src/cli/parse-options.ts";
import { UsageError } from "../src/cli/usage-error.ts";
import { startCli } from "./support/start.ts";

const sharedWorkDir = fileURLToPath(new URL("fixtures/shared-work-dir.json", import.meta.url));
const foreign = fileURLToPath(new URL("fixtures/foreign.json", import.meta.url));
const withoutJupyter = {
  NODE_OPTIONS: `--import ${new URL("fixtures/without-jupyter.mjs", import.meta.url).href}`,
};

function model(...args: string[]) {
  const options = parseOptions(args);
  if (options === undefined) throw new Error("only help was asked for");
  return executorModel(options);
}

describe("the command line", () => {
  it("builds an executor's settings from options", async () => {
    expect(
      await model(
        "--executor",
        "docker",
        "--image",
        "i",
        "--timeout-ms",
        "5",
        "--work-dir",
        "w",
        "--config",
        '{"network":"none"}',
      ),
    ).toEqual({
      provider: "@fenced/executor-docker:DockerCommandLineCodeExecutor",
      componentType: "code_executor",
      version: 1,
      config: { network: "none", image: "i", timeoutMs: 5, workDir: "w" },
    });
  });

  it("parses the commands and URLs of servers to connect to", () => {
    const said = ["--connect", "npx -y 'a b'  --flag=\"c d\" C:\\dir ''", "--connect", "https://tools.example/mcp"];
    const [command, address] = parseOptions(said)?.connect ?? [];
    expect(command).toMatchObject({ command: "npx", args: ["-y", "a b", "--flag=c d", "C:\\dir", ""] });
    expect(address).toEqual({ url: "https://tools.example/mcp" });
  });

  it.each([
    [["--executor", "moon"], "Allowed choices are auto, docker, os-sandbox, wasm, local, jupyter, aca, ssh."],
    [["--executor", "local", "--image", "i"], "--image needs --executor docker or auto"],
    [["--executor", "local", "--component", "f"], "--component describes the whole executor"],
    [["--executor", "local", "--pool", "1"], "--pool needs --http"],
    [["--executor", "local", "--port", "0"], "--port needs --http"],
    [["--executor", "local", "--allow-host", "example.com"], "--allow-host needs --http"],
    [["--executor", "local", "--http", "--allow-origin", "app.example"], "It must be an origin"],
    [["--executor", "local", "--approve", "writes"], "--approve needs --connect"],
    [["--executor", "local", "--http", "--work-dir", "w"], "--work-dir cannot be used with --http"],
    [["--executor", "local", "--timeout-ms", "0"], "whole number, at least 1"],
    [["--executor", "local", "--port", "70000"], "from 0 to 65535"],
    [["--executor", "local", "--connect", " "], "must be a command, or an address"],
    [["--executor", "local", "--connect", "npx 'it"], "It has an unclosed quote"],
    [["--executor", "local", "--connect", "https://"], "must be a valid address"],
    [["--executor", "local", "--approve", "maybe"], "Allowed choices are writes, all, none."],
    [["--executor", "local", "more"], "too many arguments"],
    [["--executor", "local", "--config", "{"], "--config is not valid JSON"],
    [["--executor", "local", "--config", "[]"], "--config must be a JSON object"],
    [["--executor", "local", "--http", "--config", '{"workDir":"w"}'], "remove workDir from --config"],
    [["--executor", "aca"], "ACA_POOL_MANAGEMENT_ENDPOINT"],
    [["--component", "nowhere.json"], "Cannot read nowhere.json"],
    [["--component", sharedWorkDir, "--http"], "remove workDir from the component"],
    [["--executor", "docker", "--http", "--config", '{"containerName":"c"}'], "remove containerName from --config"],
  ])("rejects %j with the reason", async (args, words) => {
    const outcome = (async () => model(...args))();
    await expect(outcome).rejects.toThrow(UsageError);
    await expect(outcome).rejects.toThrow(words);
  });

  it.each<[string, string[], Record<string, string>, string[]]>([
    ["a setting that openExecutor does not have", ["--config", '{"netwrok":"none"}'], {}, ['Did you mean "network"?']],
    [
      "a package that is not installed",
      ["--executor", "jupyter"],
      withoutJupyter,
      [
        "npm install @fenced/executor-jupyter",
        "npx -y -p @fenced/mcp -p @fenced/executor-jupyter fenced-mcp --executor jupyter",
      ],
    ],
    ["a package that is not allowed", ["--component", foreign], {}, ["--allow-package fenced-executor-mine"]],
    ["a missing host", ["--executor", "ssh"], {}, ["not valid: host: ", "Correct --config or the option"]],
    ["a directory of the shell", ["--executor", "local", "--work-dir", "~/a"], {}, ['--work-dir is "~/a"']],
    ["a short token", ["--executor", "local", "--http", "--token", "short"], {}, ["--token is not valid"]],
    [
      "a token of the environment",
      ["--executor", "local", "--http"],
      { FENCED_MCP_TOKEN: "short" },
      ["--token is not"],
    ],
    [
      "a wrong setting",
      ["--config", '{"memoryBytes":-1,"startTimeoutMs":"x"}'],
      {},
      ['"memoryBytes" in --config is -1'],
    ],
  ])("exits for %s without a stack trace or standard output", async (_, args, env, words) => {
    const { exitCode, stdout, stderr } = await startCli(args, env).outcome;
    expect(exitCode).toBeGreaterThan(0);
    expect(stdout).toBe("");
    for (const word of words) expect(stderr).toContain(word);
    expect(stderr).not.toMatch(/^ +at /m);
  });

  it("prints help", async () => {
    const { exitCode, stdout, stderr } = await startCli(["--help"]).outcome;
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toMatch(/^Usage: fenced-mcp \[options\]\n/);
    expect(stdout).toContain("FENCED_MCP_TOKEN");
    expect(stdout).not.toContain("[]");
  });
});
