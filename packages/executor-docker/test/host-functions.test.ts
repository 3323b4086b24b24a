import { FunctionSetupError, hostFunction } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { createExecutor, printed } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";
import { nodeImage } from "./support/images.ts";

const answer = hostFunction({
  name: "answer",
  description: "The answer.",
  input: { type: "object" },
  execute: () => 42,
});

describe("host functions", { ...needs("docker"), timeout: 120_000 }, () => {
  it("can be called from a container without a network, also by a shell command", async () => {
    await using executor = createExecutor({ network: "none", functions: [answer], env: { PATH: "/usr/bin:/bin" } });
    expect(await printed(executor, "sh", "functions answer")).toBe("42");
    expect(await printed(executor, "python", "from functions import answer\nprint(answer())")).toBe("42");
  });

  it("are set up again in the container that replaces a killed one", async () => {
    let lost = (): void => {};
    const known = new Promise<void>((resolve) => {
      lost = resolve;
    });
    await using executor = createExecutor({ functions: [answer], onSessionLost: () => lost() });
    const code = "from functions import answer\nprint(answer())";
    expect(await printed(executor, "python", code)).toBe("42");
    await docker("kill", executor.containerName);
    await known;
    expect(await printed(executor, "python", code)).toBe("42");
  });

  it("need Python in the image, and say so", async () => {
    await using executor = createExecutor({ image: nodeImage, functions: [answer] });
    const run = executor.executeCodeBlocks([{ language: "sh", code: ":" }]);
    await expect(run).rejects.toThrow(FunctionSetupError);
    await expect(run).rejects.toThrow(/Host functions need Python where the code runs/);
    expect(executor.capabilities.hostFunctions).toEqual([]);
  });
});
