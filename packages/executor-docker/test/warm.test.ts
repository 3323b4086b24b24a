import { FunctionWithRequirements, InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { forkerCode } from "@fenced/test-support/warm-python";
import { describe, expect, it } from "vitest";
import type { DockerExecutorOptions } from "../src/index.ts";
import { printed, run } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";
import { analysisImage, pythonImage } from "./support/images.ts";
import { WarmExecutor } from "./support/warm-executor.ts";

const create = (options: DockerExecutorOptions = {}): WarmExecutor =>
  new WarmExecutor({ image: pythonImage, network: "none", warm: {}, ...options });

/** The process id of the waiting interpreter, or 0. */
async function waiting(executor: WarmExecutor): Promise<number> {
  const [pid = "", isWarm] = (await printed(executor, "python", forkerCode)).split(" ");
  return isWarm === "True" ? Number(pid) : 0;
}

const reverse = (text: string): string => text.split("").toReversed().join("");

describe("warm Python in a container", needs("docker"), () => {
  it("is off by default", async () => {
    await using executor = new WarmExecutor({ image: pythonImage, network: "none" });
    expect(await waiting(executor)).toBe(0);
    expect(await docker("top", executor.containerName, "-eo", "pid,args")).not.toContain("waits for blocks");
  });

  it("keeps its memory, files, variables and control out of reach of hostile blocks", async () => {
    await using executor = create();
    const template = await waiting(executor);
    expect(template).toBeGreaterThan(0);
    const attack = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, action):
    try:
        print(name, action())
    except OSError as error:
        print(name, "refused")
def syscall(*words):
    if libc.syscall(*[ctypes.c_long(word) for word in words]) < 0:
        raise OSError(ctypes.get_errno(), "refused")
# The interpreter has forked what becomes the next block, or is about to.
others = []
while len(others) < 2:
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent, *_ = open("/proc/%s/stat" % name).read().rpartition(")")[2].split()
        except OSError:
            continue
        # Not those of earlier blocks that have ended.
        if state != "Z": parents[int(name)] = int(parent)
    nexts = [pid for pid, parent in parents.items() if parent == ${template} and pid != os.getppid()]
    others = nexts + [pid for pid, parent in parents.items() if parent in nexts]
found = [("interpreter", ${template}), ("shepherd", os.getppid())] + list(zip(("next shepherd", "next block"), others))
for what, pid in found:
    print(what)
    attempt("mem", lambda: open("/proc/%d/mem" % pid, "r+b"))
    attempt("maps", lambda: open("/proc/%d/maps" % pid).read())
    attempt("environ", lambda: open("/proc/%d/environ" % pid).read())
    attempt("fd", lambda: os.listdir("/proc/%d/fd" % pid))
    attempt("exe", lambda: os.readlink("/proc/%d/exe" % pid))
    attempt("oom", lambda: open("/proc/%d/oom_score_adj" % pid, "w").write("1000"))
    # ptrace: PTRACE_ATTACH and PTRACE_SEIZE
    attempt("attach", lambda: syscall(101, 16, pid, 0, 0))
    attempt("seize", lambda: syscall(101, 0x4206, pid, 0, 0))
    one = (ctypes.c_ulong * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    attempt("process_vm_readv", lambda: syscall(310, pid, ctypes.addressof(one), 1, ctypes.addressof(one), 1, 0))
    attempt("process_vm_writev", lambda: syscall(311, pid, ctypes.addressof(one), 1, ctypes.addressof(one), 1, 0))
    handle = os.pidfd_open(pid)
    for each in range(8):
        attempt("pidfd_getfd", lambda: syscall(438, handle, each, 0))
`;
    const lines = (await printed(executor, "python", attack)).split("\n");
    expect(lines.filter((line) => !line.endsWith("refused"))).toEqual([
      "interpreter",
      "shepherd",
      "next shepherd",
      "next block",
    ]);
    expect(lines).toHaveLength(4 * 19);
    expect(await waiting(executor)).toBe(template);
  });

  it("leaves nothing of a block's variables in the memory of later blocks", async () => {
    await using executor = create();
    const [first, second] = ["0f52a1c7", "9be3d604"];
    const search = `
import re
found = b""
for line in open("/proc/self/maps"):
    start, end, mode = re.match("([0-9a-f]+)-([0-9a-f]+) (....)", line).groups()
    if mode.startswith("rw"):
        with open("/proc/self/mem", "rb", 0) as memory:
            memory.seek(int(start, 16))
            found += memory.read(int(end, 16) - int(start, 16)) or b""
print(*[bytes(reversed(each)) in found for each in (b"${reverse(first)}", b"${reverse(second)}")])
`;
    const blocks = [{ language: "python", code: search }];
    const outputs: string[] = [];
    for (const value of [first, second]) {
      outputs.push((await executor.executeCodeBlocks(blocks, { env: { FENCED_TEST: value } })).output);
    }
    expect(await waiting(executor)).toBeGreaterThan(0);
    expect(outputs).toEqual(["True False\n", "False True\n"]);
  });

  it("is replaced by restart()", async () => {
    await using executor = create();
    const first = await waiting(executor);
    expect(first).toBeGreaterThan(0);
    await run(executor, "python", `import resource\nresource.prlimit(${first}, resource.RLIMIT_NOFILE, (64, 64))`);
    await executor.restart();
    let next = 0;
    while (next === 0) next = await waiting(executor);
    expect(next).not.toBe(first);
    const limit = "import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE)[0])";
    expect(Number(await printed(executor, "python", limit))).toBeGreaterThan(64);
  });

  it("does not break functions that blocks import", async () => {
    await using executor = create({
      functions: [FunctionWithRequirements.fromString("def twice(x: int) -> int:\n    return 2 * x\n")],
    });
    expect(await printed(executor, "python", "from functions import twice\nprint(twice(21))")).toBe("42");
    expect(await waiting(executor)).toBeGreaterThan(0);
    expect(await printed(executor, "python", "from functions import twice\nprint(twice(21))")).toBe("42");
  });

  it.each([{ warm: true }, { warm: { preload: "numpy" } }, { warm: { preload: ["a b"] } }, { warm: { modules: [] } }])(
    "rejects %j",
    (options) => {
      expect((): unknown => Reflect.construct(WarmExecutor, [options])).toThrow(InvalidInputError);
    },
  );

  it("is kept in a component model", () => {
    const { config } = create({ warm: { preload: ["numpy"] } }).dumpComponent();
    expect(config).toMatchObject({ warm: { preload: ["numpy"] } });
  });
});

describe("warm Python with preloaded extensions", needs("docker", "analysisImage"), () => {
  it("computes in threads, and draws different random numbers in each block", async () => {
    await using executor = create({ image: analysisImage, warm: { preload: ["numpy", "pandas"] } });
    expect(await printed(executor, "python", "import sys\nprint('pandas' in sys.modules)")).toBe("True");
    const code = `
import concurrent.futures, numpy, pandas
a = numpy.ones((600, 600))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(lambda n: int((a * n @ a)[0, 0]), range(4))))
print(pandas.DataFrame({"x": [1, 2]}).x.sum())
print(numpy.random.rand(), numpy.random.default_rng().random())
`;
    const outputs = [await printed(executor, "python", code), await printed(executor, "python", code)];
    const drawn = new Set<string>();
    for (const output of outputs) {
      const [sum, total, numbers = ""] = output.split("\n");
      expect([sum, total]).toEqual(["3600", "3"]);
      for (const each of numbers.split(" ")) drawn.add(each);
    }
    expect(drawn.size).toBe(4);
    expect(await waiting(executor)).toBeGreaterThan(0);
  });
});
