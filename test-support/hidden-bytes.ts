import { expect, test } from "vitest";

/** What the tests use of an executor. */
interface MeasuringExecutor {
  executeCodeBlocks(
    blocks: readonly { readonly language: string; readonly code: string }[],
    options: { readonly timeoutMs: number },
  ): Promise<{ readonly exitCode: number; readonly output: string }>;
}

const maxWorkspaceBytes = 10 * 1_048_576;

const attacks: readonly (readonly [string, string])[] = [
  [
    "a deleted file that is still open",
    `file = open("hidden", "wb")
os.unlink("hidden")
file.write(bytes(40 << 20))
file.flush()
time.sleep(600)`,
  ],
  [
    "a deleted file that is only mapped",
    `import mmap
with open("hidden", "wb+") as file:
    file.truncate(40 << 20)
    memory = mmap.mmap(file.fileno(), 0)
os.unlink("hidden")
memory[:] = b"x" * (40 << 20)
time.sleep(600)`,
  ],
  [
    "a directory that nobody may read",
    `os.makedirs("hidden/deep")
with open("hidden/deep/file", "wb") as file:
    file.write(bytes(40 << 20))
os.chmod("hidden/deep", 0)
os.chmod("hidden", 0o200)
time.sleep(600)`,
  ],
  [
    "a directory that is moved all the time, among others that take long to count",
    `for place in "az":
    for number in range(20):
        os.makedirs("%s/%d" % (place, number))
for number in range(2000):
    open("%s/%d/%d" % ("az"[number % 2], number % 20, number), "w").close()
os.mkdir("z/hidden")
for number in range(40):
    with open("z/hidden/%d" % number, "wb") as file:
        file.write(bytes(1 << 20))
while True:
    os.rename("z/hidden", "a/hidden")
    os.rename("a/hidden", "z/hidden")`,
  ],
];

/**
 * Defines the tests of an executor that measures its workspace where the code runs. They need Python.
 *
 * @param create - creates an executor that is disposed of when the test ends.
 */
export function testHiddenBytes(create: (options: { readonly maxWorkspaceBytes: number }) => MeasuringExecutor): void {
  test.for(attacks)("`maxWorkspaceBytes` counts %s", { timeout: 120_000 }, async ([, attack]) => {
    const blocks = [{ language: "python", code: `import os, time\n${attack}` }];
    const result = await create({ maxWorkspaceBytes }).executeCodeBlocks(blocks, { timeoutMs: 100_000 });
    expect(result).toMatchObject({ exitCode: 153, output: expect.stringContaining("exceed the limit of 10 MiB") });
  });

  test("`maxWorkspaceBytes` neither disturbs what changes files nor continues what the code has stopped", async () => {
    const code = `import os, signal, subprocess, time
stopped = subprocess.Popen(["sleep", "600"])
stopped.send_signal(signal.SIGSTOP)
end = time.monotonic() + 3
while time.monotonic() < end:
    os.mkdir("a")
    for number in range(100):
        open("a/%d" % number, "w").close()
    os.chmod("a", 0o300)
    os.rename("a", "b")
    os.chmod("b", 0o700)
    for number in range(100):
        os.unlink("b/%d" % number)
    os.rmdir("b")
print(open("/proc/%d/stat" % stopped.pid).read().split(") ")[1][0])
stopped.kill()`;
    const blocks = [{ language: "python", code }];
    const result = await create({ maxWorkspaceBytes }).executeCodeBlocks(blocks, { timeoutMs: 100_000 });
    expect(result).toMatchObject({ exitCode: 0, output: "T\n" });
  });
}
