import { readdirSync } from "node:fs";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { defaultTask } from "../src/default-task.ts";
import { DemoError } from "../src/demo-error.ts";
import { parseOptions } from "../src/demo-options.ts";
import { executorNames } from "../src/open-executor.ts";
import { runDemo, runDemoUnbundled, startDemo, temporaryFolder } from "./run-demo.ts";

const withoutDocker = {
  NODE_OPTIONS: `--import ${new URL("fixtures/without-package.mjs", import.meta.url).href}`,
  WITHOUT_PACKAGE: "@fenced/executor-docker",
};

describe("the command line", () => {
  it("has defaults for all options", () => {
    expect(parseOptions([])).toEqual({
      executor: "auto",
      output: "plots",
      maxMessages: 12,
      approve: false,
      web: false,
      port: 0,
    });
  });

  it("accepts a task and options", () => {
    const line =
      "--executor docker --image python:3-slim --max-messages 5 --record r --replay p --approve --web --port 8080";
    expect(parseOptions(["count them", ...line.split(" ")])).toEqual({
      task: "count them",
      executor: "docker",
      image: "python:3-slim",
      output: "plots",
      maxMessages: 5,
      record: "r",
      replay: "p",
      approve: true,
      web: true,
      port: 8080,
    });
  });

  it("accepts options of a single executor", () => {
    expect(parseOptions(["--executor", "jupyter", "--output", "charts"])).toMatchObject({ output: "charts" });
    expect(parseOptions(["--executor", "ssh", "--host", "h"])).toMatchObject({ host: "h" });
  });

  it.each([
    [["--host", "h"], "--host is for --executor ssh"],
    [["--port", "8080"], "--port is for --web"],
    [["--replay", "r", "--model", "m"], "Leave out one of them"],
    [["--executor", "aca", "--image", "i"], "--image is for --executor docker or auto"],
    [["--executor", "docker", "--output", "charts"], "--output is for --executor jupyter"],
    [["--executor", "podman"], "Allowed choices are auto, docker, os-sandbox, wasm, local, jupyter, aca, ssh."],
    [["--max-messages", "0"], "whole number, at least 1"],
    [["--max-messages", "many"], "whole number, at least 1"],
    [["--record"], "argument missing"],
    [["--model", ""], "It must not be empty"],
    [["--executor", "docker", "--image", " "], "It must not be empty"],
    [["--colour"], "unknown option '--colour'"],
    [["one", "two"], "too many arguments"],
  ])("rejects %j with the reason and a hint to --help", (args, words) => {
    expect(() => parseOptions(args)).toThrow(words);
    expect(() => parseOptions(args)).toThrow(/npm run demo -- --help$/);
    expect(() => parseOptions(args)).toThrow(DemoError);
  });

  it("prints help", async () => {
    const { exitCode, stdout, stderr } = await runDemo(["--help"]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toMatch(/^Usage: npm run demo -- \[options\] \[task\]\n/);
    expect(stdout).toContain("OPENAI_BASE_URL");
  });

  it.each<[string, string[], Record<string, string>, string]>([
    ["a custom task without a model", ["count them"], {}, "A task of your own needs a live model. Set OPENAI_API_KEY"],
    ["a model without a key", ["--model", "gpt-5"], {}, "Model gpt-5 needs a live model"],
    ["an endpoint without a model", [], { OPENAI_BASE_URL: "http://localhost:1/v1" }, "Choose a model of"],
    ["an endpoint that is not a URL", [], { OPENAI_BASE_URL: "localhost" }, "OPENAI_BASE_URL is not a URL"],
    ["an executor that is not installed", ["--executor", "docker"], withoutDocker, "add @fenced/executor-docker"],
    ["a missing endpoint", ["--executor", "aca"], {}, "ACA_POOL_MANAGEMENT_ENDPOINT"],
    ["a missing host", ["--executor", "ssh"], {}, "--host NAME"],
    ["approval without a terminal", ["--approve"], {}, "there is no terminal here"],
    ["a missing recording", ["--replay", "nowhere.jsonl"], {}, "There is no recording nowhere.jsonl"],
    ["an unknown option", ["--colour"], {}, "unknown option '--colour'"],
  ])("exits with 2 and no stack trace for %s", async (_, args, env, words) => {
    const start = env === withoutDocker ? runDemoUnbundled : runDemo;
    const { exitCode, stdout, stderr } = await start(args, env);
    expect(exitCode).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toContain(words);
    expect(stderr).not.toMatch(/^ +at /m);
    expect(stderr.split("\n").length).toBeLessThan(5);
  });

  it("rewords the library's messages about options", { timeout: 120_000 }, async () => {
    const noDaemon = await runDemo(["--executor", "docker"], { DOCKER_HOST: "tcp://127.0.0.1:9" });
    expect(noDaemon.exitCode).toBe(1);
    expect(noDaemon.stderr).toContain("DOCKER_HOST");
    expect(noDaemon.stderr).not.toContain("`docker`");
    const wrongHost = await runDemo(["--executor", "ssh", "--host=-oX"], {});
    expect(wrongHost.stderr).toMatch(/^\s*--host is not valid/);
    const noPool = await runDemo(["--executor", "aca"], { ACA_POOL_MANAGEMENT_ENDPOINT: "x" });
    expect(noPool.stderr).toMatch(/^\s*ACA_POOL_MANAGEMENT_ENDPOINT "x" is not a URL/);
  });

  it("calls the host of --executor ssh by its option, too", needs("ssh"), async () => {
    const noHost = await runDemo(["--executor", "ssh", "--host", "nowhere.invalid"], {});
    expect(noHost.stderr).toMatch(/--host/);
    expect(noHost.stderr).not.toContain("`host`");
  });

  it("cleans up when the reader of its output has gone", async () => {
    const folder = await temporaryFolder();
    const { child, outcome } = startDemo(["--executor", "local"], { TMPDIR: folder });
    child.stdout.once("data", () => child.stdout.destroy());
    const { exitCode, stderr } = await outcome;
    expect({ exitCode, stderr }).toEqual({ exitCode: 141, stderr: "" });
    expect(readdirSync(folder).filter((name) => name.startsWith("fenced-"))).toEqual([]);
  });

  it("does not name a species in its default tasks", () => {
    for (const executor of executorNames) {
      for (const web of [false, true]) {
        expect(defaultTask({ executor, web })).not.toMatch(/adelie|gentoo|chinstrap/i);
      }
    }
  });
});
