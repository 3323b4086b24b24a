import { needs } from "@fenced/test-support";
import { testHiddenBytes } from "@fenced/test-support/hidden-bytes";
import { smallDisk } from "@fenced/test-support/small-disk";
import { describe, expect, test } from "vitest";
import { executorWith } from "../support/local-executor.ts";

const maxWorkspaceBytes = 10 * 1_048_576;

describe("bytes that code hides in a sandbox", needs("python3", "bubblewrap"), () => {
  testHiddenBytes((options) => executorWith({ isolation: "os-sandbox", ...options }));
});

test(
  "the count of a disk that is the work directory's own counts",
  needs("python3", "bubblewrap", "root"),
  async () => {
    const workDir = await smallDisk("64m");
    const executor = executorWith({ isolation: "os-sandbox", workDir, maxWorkspaceBytes });
    // A descriptor that is on its way between two programs is seen nowhere.
    const code = `import array, os, socket, time
file = open("hidden", "wb")
os.unlink("hidden")
ours, theirs = socket.socketpair()
ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))])
file.write(bytes(40 << 20))
file.close()
time.sleep(600)`;
    const blocks = [{ language: "python", code }];
    expect(await executor.executeCodeBlocks(blocks, { timeoutMs: 60_000 })).toMatchObject({ exitCode: 153 });
  },
);

test("a deleted file that is still open counts without a sandbox, too", needs("bash"), async () => {
  const executor = executorWith({ maxWorkspaceBytes });
  const code = "exec 3>hidden; rm hidden; head -c 40000000 /dev/zero >&3; sleep 600";
  const blocks = [{ language: "bash", code }];
  expect(await executor.executeCodeBlocks(blocks, { timeoutMs: 60_000 })).toMatchObject({ exitCode: 153 });
});
