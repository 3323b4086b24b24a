import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import type { PullProgress } from "../src/index.ts";
import { createExecutor, printed, run } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";
import { startFailingRegistry, startRegistry } from "./support/registry.ts";

const unavailable = (reason: RegExp) => (error: unknown) =>
  BackendUnavailableError.isInstance(error) && reason.test(error.message);

describe("images", { ...needs("docker"), timeout: 120_000 }, () => {
  it("that are missing and must not be pulled cause a clear error", async () => {
    const executor = createExecutor({ image: "fenced-test:no-such-image", pull: "never" });
    await expect(executor.start()).rejects.toSatisfy(
      unavailable(/no image "fenced-test:no-such-image".*docker pull fenced-test:no-such-image/),
    );
  });

  it("of a registry that cannot be reached cause an error that says so", async () => {
    const executor = createExecutor({ image: "127.0.0.1:9/nothing:here" });
    await expect(executor.start()).rejects.toThrow(
      /^The image "127\.0\.0\.1:9\/nothing:here" could not be pulled: the daemon cannot reach 127\.0\.0\.1:9 \(connection refused\)\. Check the daemon's network/,
    );
  });

  it.each([
    [
      404,
      '{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}',
      "has no such image or tag. Check its name and tag",
    ],
    [
      401,
      '{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}',
      "has no such image, or it is private. Check its name. If it is private, run `docker login`",
    ],
    [
      403,
      '{"errors":[{"code":"DENIED","message":"requested access to the resource is denied"}]}',
      "has no such image, or it is private.",
    ],
    [
      429,
      '{"errors":[{"code":"TOOMANYREQUESTS","message":"You have reached your pull rate limit."}]}',
      "allows no more pulls for now. Try again later",
    ],
    [404, `<html>${"<p>Not found</p>".repeat(1000)}</html>`, "has no such image or tag."],
    [503, `<html>${"<p>Under maintenance</p>".repeat(1000)}</html>`, "answered with HTTP 503."],
  ] as const)(
    "that a registry refuses with HTTP %i cause an error with its reason in a sentence",
    async (status, body, reason) => {
      await using registry = await startFailingRegistry(status, body);
      const image = `${registry.address}/some/image:tag`;
      const error: unknown = await createExecutor({ image })
        .start()
        .catch((thrown: unknown) => thrown);
      expect(BackendUnavailableError.isInstance(error) && error.message).toContain(
        `The image "${image}" could not be pulled: ${registry.address} ${reason}`,
      );
      expect(String(error).length).toBeLessThan(400);
      expect(String(error)).not.toMatch(/HTTP code|https?:|[<>{}]/);
    },
  );

  it("are pulled, with progress, if they are missing; others only with `pull: always`", async () => {
    await using registry = await startRegistry();
    const image = `${registry.address}/fenced/shell:test`;
    const progress: PullProgress[] = [];
    const onPullProgress = (each: PullProgress) => void progress.push(each);
    try {
      await using executor = createExecutor({ image, onPullProgress });
      expect(await printed(executor, "sh", "echo 42")).toBe("42");
      expect(progress.every((each) => each.image === image)).toBe(true);
      expect(progress.map(({ status }) => status)).toContain("Pull complete");
      expect(progress.some(({ layer, current }) => layer !== undefined && current !== undefined)).toBe(true);

      const pulled = registry.manifests;
      await using second = createExecutor({ image, onPullProgress });
      await second.start();
      expect(registry.manifests).toBe(pulled);
      await using third = createExecutor({ image, pull: "always" });
      await third.start();
      expect(registry.manifests).toBeGreaterThan(pulled);
    } finally {
      await docker("rmi", "--force", image);
    }
  });

  it("without a shell are reported as such", async () => {
    const image = `fenced-test:shell-less-${process.pid}`;
    const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
    try {
      await writeFile(join(directory, "Dockerfile"), "FROM scratch\nLABEL empty=yes\n");
      await docker("build", "--quiet", "--tag", image, directory);
      await expect(createExecutor({ image }).start()).rejects.toSatisfy(
        (error: unknown) => InvalidInputError.isInstance(error) && /has no shell named `sh`/.test(error.message),
      );
    } finally {
      await docker("rmi", "--force", image);
      await rm(directory, { recursive: true });
    }
  });

  it("are not blamed for programs that the caller's PATH lacks", async () => {
    const env = { PATH: "/opt/homebrew/bin:/Users/me/bin" };
    await using executor = createExecutor({ env });
    const { output } = await run(executor, "python", "print(1)");
    expect(output).toMatch(
      /the PATH in the option `env` \(\/opt\/homebrew\/bin:\/Users\/me\/bin\) has no "python3"; leave it out/,
    );
    await using node = createExecutor({ image: "fenced-test:node", env });
    expect(await printed(node, "javascript", "console.log(process.env.PATH)")).toBe(env.PATH);
  });

  it("whose pull breaks off cause a clear error", async () => {
    await using registry = await startRegistry({ breakLayers: true });
    const executor = createExecutor({ image: `${registry.address}/fenced/shell:broken` });
    await expect(executor.start()).rejects.toSatisfy(unavailable(/could not be pulled/));
  });
});
