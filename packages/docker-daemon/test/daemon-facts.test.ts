import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { checkLimits, daemonFacts, findDaemon } from "../src/index.ts";

describe("a daemon", () => {
  it("of Docker that runs as root enforces all limits", needs("docker", "root"), async () => {
    const daemon = await findDaemon(undefined);
    try {
      const facts = await daemonFacts(daemon);
      expect(facts).toMatchObject({ rootless: false, ignoredLimits: [], filter: "replaceable" });
      checkLimits(daemon, facts, { memoryBytes: 100_000_000 });
    } finally {
      daemon.release();
    }
  });

  it(
    "without root, on control groups of version 1, ignores limits, which is an error or a warning",
    needs("podman", "root"),
    async (context) => {
      context.skip(!existsSync("/sys/fs/cgroup/memory"), "this machine has control groups of version 2");
      const home = await mkdtemp(join(tmpdir(), "fenced-test-"));
      await chown(home, 1234, 1234);
      const socket = join(home, "podman.sock");
      const service = spawn(
        "podman",
        ["--storage-driver", "vfs", "system", "service", "--time=0", `unix://${socket}`],
        {
          uid: 1234,
          gid: 1234,
          cwd: home,
          env: { PATH: process.env["PATH"] ?? "", HOME: home, XDG_RUNTIME_DIR: home },
          stdio: "ignore",
        },
      );
      const exited = once(service, "exit");
      const warnings: string[] = [];
      const listen = (warning: Error): void => void warnings.push(warning.message);
      process.on("warning", listen);
      try {
        for (let attempt = 0; attempt < 1200 && !existsSync(socket); attempt += 1) await sleep(50);
        const daemon = await findDaemon(`unix://${socket}`);
        const facts = await daemonFacts(daemon);
        expect(facts).toMatchObject({ rootless: true, ignoredLimits: ["memoryBytes", "pidsLimit", "cpus"] });
        for (const limits of [{ memoryBytes: 100_000_000 }, { pidsLimit: 20 }, { hardened: false, cpus: 1 }]) {
          expect(() => checkLimits(daemon, facts, limits)).toThrow(InvalidInputError);
        }
        checkLimits(daemon, facts, { hardened: false });
        checkLimits(daemon, facts, {});
        checkLimits(daemon, facts, {});
        await sleep(10);
        expect(warnings).toEqual([expect.stringMatching(/no limits on `memoryBytes` and `pidsLimit`.*version 2/)]);
        daemon.release();
      } finally {
        process.off("warning", listen);
        service.kill();
        await exited;
        await rm(home, { recursive: true, force: true });
      }
    },
  );
});
