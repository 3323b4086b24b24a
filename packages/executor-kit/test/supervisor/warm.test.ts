import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { blockEnvironment } from "@fenced/executor-kit";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { isAlive } from "../support/is-alive.ts";
import { openPythonPlace, type Outcome, type PythonPlace } from "../support/python-place.ts";
import { pythonPrograms } from "../support/python-programs.ts";

/** The outcome without what differs between processes, or by the one frame that is missing before Python 3.12. */
function steady({ stdout, stderr, exitCode }: Outcome): Outcome {
  const strip = (text: string): string => text.replace(/0x[0-9a-f]+/g, "0x").replace(/repeated \d+ more/g, "repeated");
  return { stdout: strip(stdout), stderr: strip(stderr), exitCode };
}

async function outcomes(place: PythonPlace): Promise<Record<string, Outcome>> {
  const found: Record<string, Outcome> = {};
  for (const [name, code] of Object.entries(pythonPrograms)) {
    found[name] = steady(await place.run(code, { stdin: "one\ntwo\n" }));
  }
  return found;
}

describe.skipIf(process.platform !== "linux")("programs forked from a waiting interpreter", needs("python3"), () => {
  it("see the same process state as a new process", async () => {
    const place = await openPythonPlace();
    const observe = await readFile(new URL("../fixtures/observe.py", import.meta.url), "utf8");
    const cold = await place.run(observe);
    expect(cold.stderr).toBe("");
    await place.warm();
    const warm = await place.run(observe);
    expect(JSON.parse(warm.stdout)).toEqual(JSON.parse(cold.stdout));
    expect(warm).toEqual(cold);
  });

  it("end, fail and print as in a new process", { timeout: 120_000 }, async () => {
    const place = await openPythonPlace();
    await writeFile(path.join(place.directory, "neighbour.py"), "VALUE = 1");
    const cold = await outcomes(place);
    await place.warm();
    const warm = await outcomes(place);
    expect(warm).toEqual(cold);
    expect(await place.isWarm()).toBe(true);
    expect([cold["exit codes"]?.exitCode, cold["an interrupt"]?.exitCode]).toEqual([7, 130]);
  });

  it("can recurse as deeply, except for one frame before Python 3.12", async () => {
    const place = await openPythonPlace();
    const code =
      "depth = 0\ndef f():\n    global depth\n    depth += 1\n    f()\ntry: f()\nexcept RecursionError: print(depth)";
    const cold = Number((await place.run(code)).stdout);
    await place.warm();
    expect(cold - Number((await place.run(code)).stdout)).toBeOneOf([0, 1]);
  });

  it("see nothing of each other, and draw different random numbers", async () => {
    const place = await openPythonPlace();
    await place.warm({ preload: ["random", "uuid", "tempfile"] });
    const code =
      "import builtins, os, random, sys, tempfile, uuid\nprint(hasattr(builtins, 'left'), os.environ.get('LEFT'), 'left' in sys.modules, os.getcwd())\n" +
      "builtins.left = os.environ['LEFT'] = sys.modules['left'] = '1'\nos.chdir('/')\n" +
      "print(random.random(), uuid.uuid4(), next(tempfile._get_candidate_names()))";
    const runs = [await place.run(code), await place.run(code), await place.run(code)].map(({ stdout }) =>
      stdout.split("\n"),
    );
    expect(runs.map(([first]) => first)).toEqual(runs.map(() => `False None False ${place.directory}`));
    const drawn = runs.flatMap(([, second = ""]) => second.split(" "));
    expect(new Set(drawn).size).toBe(9);
  });

  it("have the preloaded modules, and import others as usual", async () => {
    const place = await openPythonPlace();
    await place.warm({ preload: ["decimal", "no_such_module", "xml.dom.minidom"] });
    const code = (name: string): string => `import sys\nprint(${JSON.stringify(name)} in sys.modules)\nimport ${name}`;
    expect(await place.run(code("decimal"))).toEqual({ stdout: "True\n", stderr: "", exitCode: 0 });
    expect((await place.run(code("xml.dom.minidom"))).stdout).toBe("True\n");
    expect(await place.run(code("no_such_module"))).toMatchObject({ stdout: "False\n", exitCode: 1 });
  });

  it("import from directories that did not exist when the interpreter started", async () => {
    const place = await openPythonPlace();
    const modules = path.join(place.directory, "modules");
    const env = { ...blockEnvironment, PYTHONPATH: modules };
    await place.warm({ env });
    await mkdir(modules);
    await writeFile(path.join(modules, "late.py"), "VALUE = 5");
    expect((await place.run("import late\nprint(late.VALUE)", { env })).stdout).toBe("5\n");
    expect(await place.isWarm({ env })).toBe(true);
  });

  it("are killed with everything that they started, however it hides", async () => {
    const place = await openPythonPlace();
    await place.warm();
    const controller = new AbortController();
    const code =
      "import os, signal, subprocess, sys, time\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\n" +
      "p = subprocess.Popen(['sleep', '300'], start_new_session=True, env={})\nopen('pids', 'w').write('%d %d' % (os.getpid(), p.pid))\nos.rename('pids', 'ready')\ntime.sleep(300)";
    const running = place.run(code, { signal: controller.signal });
    const pids = await readWhenThere(path.join(place.directory, "ready"));
    controller.abort();
    expect((await running).exitCode).toBe(137);
    for (const pid of pids.split(" ")) expect(await isAlive(Number(pid))).toBe(false);
    expect(await place.isWarm()).toBe(true);
  });

  it("are found by their mark and ended when their shepherd is killed", async () => {
    const place = await openPythonPlace();
    await place.warm();
    const code = "import os, signal, time\nprint(os.getpid())\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(300)";
    const { stdout, exitCode } = await place.run(code);
    expect(exitCode).toBe(137);
    expect(await isAlive(Number(stdout))).toBe(false);
  });
});

/** Waits until the interpreter has forked the next program, whose processes everybody can list. */
const findNext = `
import os, signal, time
def parents():
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try: found[int(name)] = int(open("/proc/" + name + "/stat").read().rpartition(")")[2].split()[1])
            except OSError: pass
    return found
shepherd = program = None
while program is None:
    time.sleep(0.01)
    table = parents()
    interpreter = table[os.getppid()]
    for pid, parent in table.items():
        if table.get(parent) == interpreter and parent != os.getppid():
            shepherd, program = parent, pid`;

async function readWhenThere(file: string): Promise<string> {
  for (;;) {
    const text = await readFile(file, "utf8").catch(() => undefined);
    if (text !== undefined) return text;
    await sleep(10);
  }
}

describe.skipIf(process.platform !== "linux")("a waiting interpreter", needs("python3"), () => {
  it.each([["SIGKILL"], ["SIGINT"], ["SIGTERM"]])("is replaced once a program has sent it %s", async (signal) => {
    const place = await openPythonPlace();
    const first = await place.warm();
    await place.run(`import os, signal\nos.kill(${first}, signal.${signal})`);
    expect(await place.awaitWarm({}, first)).not.toBe(first);
    expect(await isAlive(first)).toBe(false);
  });

  it("that a program has stopped fails no block, and is replaced", async () => {
    const place = await openPythonPlace();
    const first = await place.warm();
    await place.run(`import os, signal\nos.kill(${first}, signal.SIGSTOP)`);
    expect(await place.run("print(6 * 7)")).toEqual({ stdout: "42\n", stderr: "", exitCode: 0 });
    expect(await place.awaitWarm({}, first)).not.toBe(first);
    expect(await isAlive(first)).toBe(false);
  });

  it.each([
    ["shepherd", "SIGKILL"],
    ["shepherd", "SIGSTOP"],
    ["shepherd", "SIGINT"],
    ["program", "SIGKILL"],
    ["program", "SIGSTOP"],
    ["program", "SIGINT"],
  ])("fails no program if an earlier one has sent the next %s %s", async (which, signal) => {
    const place = await openPythonPlace();
    await place.warm();
    const attack = await place.run(`${findNext}\nos.kill(${which}, signal.${signal})\nprint("sent")`);
    expect(attack).toEqual({ stdout: "sent\n", stderr: "", exitCode: 0 });
    const code = "open('runs', 'a').write('x')\nprint(6 * 7)";
    expect(await place.run(code)).toEqual({ stdout: "42\n", stderr: "", exitCode: 0 });
    expect(await readFile(path.join(place.directory, "runs"), "utf8")).toBe("x");
    await place.awaitWarm();
  });

  it("keeps Python's own SIGINT handler in a program", async () => {
    const place = await openPythonPlace();
    await place.warm();
    const code =
      "import os, signal\ntry: os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt: print('interrupted')";
    expect(await place.run(code)).toEqual({ stdout: "interrupted\n", stderr: "", exitCode: 0 });
  });

  it("does not start while a process runs that a program has left behind", async () => {
    const place = await openPythonPlace();
    const first = await place.warm();
    const left = await place.run("import subprocess\nprint(subprocess.Popen(['sleep', '300'], stdout=-3).pid)");
    process.kill(first, "SIGKILL");
    // Until it is dead, what it has forked for the next program is still good.
    await expect.poll(() => isAlive(first)).toBe(false);
    for (let turn = 0; turn < 5; turn += 1) expect(await place.isWarm()).toBe(false);
    process.kill(Number(left.stdout), "SIGKILL");
    await place.awaitWarm({}, first);
  });

  it("ends with a reset, and is then replaced", async () => {
    const place = await openPythonPlace();
    const first = await place.warm();
    await place.supervisor.reset();
    expect(await isAlive(first)).toBe(false);
    expect(await place.awaitWarm({}, first)).not.toBe(first);
  });

  it("ends with its supervisor", async () => {
    const place = await openPythonPlace();
    const first = await place.warm();
    await place.run(`import os, signal\nos.kill(${first}, signal.SIGSTOP)`);
    await place.end();
    expect(await isAlive(first)).toBe(false);
  });

  it("is not used for variables that take effect when Python starts", async () => {
    const place = await openPythonPlace();
    await place.warm();
    const cases: [Record<string, string>, string][] = [
      [{ PYTHONHASHSEED: "0" }, "import sys\nprint(sys.flags.hash_randomization)"],
      [{ PYTHONWARNINGS: "error" }, "import sys\nprint(sys.warnoptions)"],
      [{ PYTHONUTF8: "0", PYTHONIOENCODING: "latin-1" }, "import sys\nprint(sys.stdout.encoding, sys.flags.utf8_mode)"],
      [{ PYTHONUNBUFFERED: "" }, "import sys\nprint(sys.stdout.write_through)"],
      [{ PYTHONPATH: "lib" }, "import sys\nprint(sys.path[1])"],
      [{ LD_BIND_NOW: "1" }, "print(1)"],
      [{ TZ: "Asia/Tokyo" }, "import time\nprint(time.tzname)"],
    ];
    const others = await openPythonPlace();
    for (const [variables, code] of cases) {
      const env = { ...blockEnvironment, ...variables };
      const cold = await others.run(code, { env });
      expect(cold.exitCode).toBe(0);
      const warm = await place.run(code, { env });
      expect(warm.stdout.replaceAll(place.directory, "")).toBe(cold.stdout.replaceAll(others.directory, ""));
      expect(await place.isWarm()).toBe(true);
    }
  });

  it("adopts variables that stay the same, unless they are of a kind that it cannot have", async () => {
    const place = await openPythonPlace();
    await place.warm();
    const env = { ...blockEnvironment, TZ: "Asia/Tokyo", PYTHONPATH: "/nowhere" };
    await place.awaitWarm({ env });
    expect((await place.run("import sys, time\nprint(time.tzname, sys.path[1])", { env })).stdout).toBe(
      "('JST', 'JST') /nowhere\n",
    );
    const fatal = { ...env, PYTHONWARNINGS: "error" };
    for (let turn = 0; turn < 5; turn += 1) expect(await place.isWarm({ env: fatal })).toBe(false);
  });

  it("is replaced when the files that Python reads at startup have changed", async () => {
    const place = await openPythonPlace();
    const first = await place.warm();
    const { stdout } = await place.run("import site\nprint(site.getusersitepackages())");
    const packages = stdout.trim();
    await mkdir(packages, { recursive: true });
    await writeFile(path.join(packages, "added.py"), "VALUE = 5");
    expect((await place.run("import added\nprint(added.VALUE)")).stdout).toBe("5\n");
    const second = await place.awaitWarm({}, first);
    expect((await place.run("import added\nprint(added.VALUE)")).stdout).toBe("5\n");
    await writeFile(path.join(packages, "path.pth"), "import sys; sys.from_pth = 1");
    expect((await place.run("import sys\nprint(sys.from_pth)")).stdout).toBe("1\n");
    const third = await place.awaitWarm({}, second);
    await writeFile(path.join(packages, "path.pth"), "import sys; sys.from_pth = 2");
    expect((await place.run("import sys\nprint(sys.from_pth)")).stdout).toBe("2\n");
    await place.awaitWarm({}, third);
    expect((await place.run("import sys\nprint(sys.from_pth)")).stdout).toBe("2\n");
  });

  it("imports nothing from the programs' directory", async () => {
    const place = await openPythonPlace();
    for (const name of ["_ctypes", "_socket", "linecache", "sitecustomize", "decimal"]) {
      await writeFile(
        path.join(place.directory, `${name}.py`),
        "open('imported', 'a').write(__name__)\nraise ImportError",
      );
    }
    await place.warm({ preload: ["decimal"] });
    await expect(readFile(path.join(place.directory, "imported"))).rejects.toThrow("ENOENT");
  });

  it("leaves programs cold if Python cannot wait", async () => {
    const place = await openPythonPlace();
    place.supervisor.keepWarm({ python: "/bin/false", env: blockEnvironment });
    expect(await place.isWarm()).toBe(false);
    const python = path.join(place.directory, "python");
    await writeFile(python, `#!/bin/sh\n[ "$1" = -c ] && exit 1\nexec '${place.python}' "$@"\n`, { mode: 0o755 });
    place.supervisor.keepWarm({ python, env: blockEnvironment });
    for (let turn = 0; turn < 3; turn += 1) expect((await place.run("print(1)", { python })).stdout).toBe("1\n");
  });
});
