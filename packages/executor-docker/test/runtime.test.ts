import { mkdtemp, rm, stat } from "node:fs/promises";
import { release, tmpdir } from "node:os";
import { join } from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { createExecutor, inspect, printed, run } from "./support/create-executor.ts";
import { nodeImage } from "./support/images.ts";

const kernelRelease = "import platform; print(platform.release())";

describe("the OCI runtime", needs("docker"), () => {
  it("says which kernel code has, once that is known", async () => {
    await using executor = createExecutor({ runtime: "runc" });
    expect(executor.capabilities.kernel).toBeUndefined();
    expect(await printed(executor, "python", kernelRelease)).toBe(release());
    expect(executor.capabilities.kernel).toBe("shared");
  });

  it("is gVisor if it is the strongest that is registered", needs("gvisor"), async () => {
    await using executor = createExecutor({ runtime: "auto" });
    expect(await printed(executor, "python", kernelRelease)).not.toBe(release());
    expect(executor.capabilities.kernel).toBe("user-space");
    expect(await inspect(executor, ".HostConfig.Runtime")).toBe("runsc");
    // It needs several of the machine's processes for each of its own.
    expect(await inspect(executor, ".HostConfig.PidsLimit")).toBe(2048);
  });

  it("of a container that is reused is what it was created with", needs("gvisor"), async () => {
    const first = createExecutor({ runtime: "runsc", stopContainer: false });
    await first.start();
    await first.stop();
    await using second = createExecutor({ containerName: first.containerName, reuse: true, runtime: "runc" });
    await second.start();
    expect(second.capabilities.kernel).toBe("user-space");
  });

  it("keeps code in gVisor from leaving setuid programs, too", needs("gvisor", "root"), async () => {
    const workDir = await mkdtemp(join(tmpdir(), "fenced-test-"));
    onTestFinished(() => rm(workDir, { recursive: true }));
    await using executor = createExecutor({ runtime: "runsc", workDir });
    const code = 'import os\nopen("program", "w").close()\nos.chmod("program", 0o4755)';
    const { exitCode, output } = await run(executor, "python", code);
    expect(exitCode).toBe(1);
    expect(output).toContain("PermissionError");
    expect((await stat(join(workDir, "program"))).mode & 0o7000).toBe(0);
  });

  it.each([true, false])("starts threads in gVisor, too, with hardened: %j", needs("gvisor"), async (hardened) => {
    await using executor = createExecutor({ runtime: "runsc", hardened });
    const code = `import threading
thread = threading.Thread(target=print, args=("from a thread",))
thread.start()
thread.join()`;
    expect(await printed(executor, "python", code)).toBe("from a thread");
  });

  it("leaves the machine's /dev/null to its owner, also in an image without Python", needs("gvisor"), async () => {
    const before = await stat("/dev/null");
    await using executor = createExecutor({ image: nodeImage, runtime: "runsc" });
    expect(await printed(executor, "sh", "cat; echo done")).toContain("done");
    expect((await stat("/dev/null")).uid).toBe(before.uid);
  });

  it("that the daemon does not have is an error that says how to check it", async () => {
    await using executor = createExecutor({ runtime: "missing" });
    const error = await executor.start().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(BackendUnavailableError);
    expect(String(error)).toContain("docker run --rm -i --runtime missing fenced-test:python true");
  });
});
