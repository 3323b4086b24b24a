import { existsSync } from "node:fs";
import { ComponentError, describeCodeExecutor, InvalidInputError, knownCapabilities } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { expect, it } from "vitest";
import { localSessions } from "../support/local-sessions.ts";
import { sh } from "../support/runs.ts";

it("the executor of a key is a complete executor that shares the key's session", needs("bash"), async () => {
  const sessions = localSessions();
  const executor = sessions.executor("ann");
  expect(sessions.counts.open).toBe(0);
  expect(() => executor.capabilities).toThrow("does not know what it can do before it has started");
  expect(() => executor.formatFunctionsForPrompt()).toThrow(InvalidInputError);
  expect(knownCapabilities(executor)).toBe(undefined);
  expect(describeCodeExecutor(executor)).toBe("Runs code and returns what it prints.");
  await executor.start();
  expect(executor.capabilities.languages).toContain("sh");
  await sessions.run("ann", sh("echo hers > note"));
  expect((await executor.executeCodeBlocks(sh("cat note; pwd"))).output).toMatch(/^hers\n\//);
  const streamed: string[] = [];
  for await (const event of executor.streamCodeBlocks(sh("cat note"))) streamed.push(event.type);
  expect(streamed.at(-1)).toBe("result");
  expect(Buffer.from(await executor.files.read("note")).toString()).toBe("hers\n");
  await executor.restart();
  expect((await executor.executeCodeBlocks(sh("cat note"))).output).toBe("hers\n");
  expect(sessions.counts.open).toBe(1);
  expect(() => executor.dumpComponent()).toThrow(ComponentError);

  const workspace = (await sessions.run("ann", sh("pwd"))).output.trim();
  await sessions.run("bob", sh("true"));
  await executor.stop();
  expect(existsSync(workspace)).toBe(false);
  expect(sessions.counts.open).toBe(1);
  expect(knownCapabilities(executor)).toBe(undefined);
  // It need not have been started by this object.
  expect(sessions.executor("bob").capabilities.isolation).toBe("none");
});
