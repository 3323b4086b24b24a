import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { inPlace, places } from "../support/places.ts";
import { newToolset, newWorker } from "./support.ts";

describe.each(places)("an environment worker with sandboxes in $place", ({ place, backends }) => {
  describe("with all that it needs", needs(...backends), () => {
    it("serves a session from its claim to its end", async () => {
      const { createExecutor } = inPlace(place);
      const asked: unknown[] = [];
      const toolset = newToolset({
        createExecutor: (request) => {
          asked.push({ id: request.id, workdir: typeof request.given["workdir"] });
          return createExecutor(request);
        },
      });
      const api = await newWorker(toolset);
      api.enqueue("one");
      const made = await api.call("one", "write", { file_path: "src/a.py", content: "print(6 * 7)\n" });
      expect(made).toEqual({ isError: false, text: "wrote 13 bytes to src/a.py" });
      expect(await api.call("one", "bash", { command: "cd src && python3 a.py && X=kept" })).toEqual({
        isError: false,
        text: "42",
      });
      const later = await api.call("one", "bash", {
        command: 'echo "$X in $(basename "$PWD")"; echo bad >&2; exit_in() { return 3; }; exit_in',
      });
      expect(later).toEqual({ isError: true, text: "kept in src\nbad" });
      const edited = await api.call("one", "edit", { file_path: "src/a.py", old_string: "7", new_string: "8" });
      expect(edited.text).toBe("edited src/a.py (1 replacement(s))");
      expect(await api.call("one", "read", { file_path: "src/a.py" })).toEqual({
        isError: false,
        text: "print(6 * 8)\n",
      });
      const root = toolset.executors[0]?.workspacePath ?? "";
      expect((await api.call("one", "glob", { pattern: "**/*.py" })).text).toBe(`${root}/src/a.py`);
      expect((await api.call("one", "grep", { pattern: "\\d \\*" })).text).toBe(`${root}/src/a.py:1:print(6 * 8)`);
      api.terminate("one");
      await expect.poll(() => api.count(/^POST .*\/stop$/)).toBe(1);
      await expect(toolset.executors[0]?.start()).rejects.toThrow(/disposed/);
      expect(asked).toEqual([{ id: "one", workdir: "string" }]);
      const bearers = (route: RegExp): Set<string> =>
        new Set(api.received.filter((each) => route.test(each.route)).map(({ bearer }) => bearer));
      expect(bearers(/poll|ack/)).toEqual(new Set(["environment-key"]));
      expect(bearers(/sessions|heartbeat|stop/)).toEqual(new Set(["token-of-one"]));
    });
  });
});

describe("an environment worker", needs("python3", "bash"), () => {
  it("ends a session's sandbox with its claim while a command runs", async () => {
    const toolset = newToolset();
    const api = await newWorker(toolset);
    const leave = async (session: string, lease: "lost" | "stopping"): Promise<void> => {
      api.enqueue(session);
      await api.call(session, "bash", { command: "sleep 600 & echo $! > job" });
      const executor = toolset.executors.at(-1);
      void api.call(session, "bash", { command: "touch here; sleep 600" });
      await expect.poll(() => executor?.files.stat("here").catch(() => undefined)).toBeDefined();
      api.lease = lease;
      await expect.poll(() => executor?.start().catch(String)).toMatch(/disposed/);
      api.lease = "active";
    };
    await leave("one", "lost");
    expect(api.count(/stop$/)).toBe(0);
    await leave("two", "stopping");
    await expect.poll(() => api.count(/stop$/)).toBe(1);
    expect(toolset.executors).toHaveLength(2);
  });

  it("finds the files of a session again that was idle, if they are kept", async () => {
    const { createExecutor, snapshots } = inPlace("this host");
    const toolset = newToolset({ createExecutor, snapshots });
    const api = await newWorker(toolset, { maxIdleMs: 200 });
    const contents: string[] = [];
    for (const round of [1, 2, 3]) {
      api.enqueue("one");
      await api.call("one", "bash", { command: `echo ${round} >> rounds` });
      contents.push((await api.call("one", "read", { file_path: "rounds" })).text);
      api.idle("one");
      await expect.poll(() => api.count(/stop$/)).toBe(round);
    }
    expect(contents).toEqual(["1\n", "1\n2\n", "1\n2\n3\n"]);
    expect([toolset.executors.length, (await snapshots?.list())?.length]).toEqual([3, 1]);
    api.enqueue("other");
    expect((await api.call("other", "read", { file_path: "rounds" })).isError).toBe(true);
  });

  it("tells a model that the files of a session could not be kept", async () => {
    const { createExecutor, snapshots } = inPlace("this host");
    if (!snapshots) throw new Error("there are no snapshots");
    const broken = {
      ...snapshots,
      open: snapshots.open.bind(snapshots),
      begin: () => Promise.reject(new Error("full")),
    };
    const toolset = newToolset({ createExecutor, snapshots: broken });
    const api = await newWorker(toolset, { maxIdleMs: 200 });
    api.enqueue("one");
    await api.call("one", "bash", { command: "echo 1 > file" });
    api.idle("one");
    await expect.poll(() => api.count(/stop$/)).toBe(1);
    api.enqueue("one");
    expect(await api.call("one", "read", { file_path: "file" })).toEqual({
      isError: true,
      text: expect.stringMatching(/^read: the sandbox was lost: its last files could not be kept: full/),
    });
    expect((await api.call("one", "read", { file_path: "file" })).text).toBe("read: file: no such file or directory");
  });

  it("tells a model that there is no sandbox, or no longer, and goes on in a new one", async () => {
    let attempts = 0;
    const { createExecutor } = inPlace("this host");
    const toolset = newToolset({
      createExecutor: (request) => {
        attempts += 1;
        if (attempts === 1) throw new Error("no room");
        return createExecutor(request);
      },
    });
    const api = await newWorker(toolset);
    api.enqueue("one");
    expect(await api.call("one", "glob", { pattern: "*" })).toEqual({ isError: true, text: "glob: no room" });
    expect((await api.call("one", "bash", { command: "X=1; echo $X" })).text).toBe("1");
    await toolset.executors[0]?.stop();
    expect(await api.call("one", "bash", { command: "echo $X" })).toMatchObject({ isError: true });
    expect(await api.call("one", "bash", { command: 'echo "new$X"' })).toEqual({ isError: false, text: "new" });
    await expect(toolset.executors[0]?.start()).rejects.toThrow(/disposed/);
  });

  it("leaves a session whose sandbox is never created, and ends one that comes too late", async () => {
    let answer: (executor: LocalCommandLineCodeExecutor) => void = () => {};
    const toolset = newToolset({
      createExecutor: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    });
    const api = await newWorker(toolset);
    api.enqueue("one");
    void api.call("one", "bash", { command: "true" });
    await expect.poll(() => api.count(/GET .*\/events$/)).toBe(1);
    api.lease = "stopping";
    await expect.poll(() => api.count(/stop$/)).toBe(1);
    const late = new LocalCommandLineCodeExecutor();
    answer(late);
    await expect.poll(() => late.start().catch(String)).toMatch(/disposed/);
  });

  it("goes on in the sandbox that an earlier program has left", async () => {
    const left = new LocalCommandLineCodeExecutor();
    await left.files.write("file", "left");
    const resumeExecutor = ({ id }: { readonly id: string }) => (id === "one" ? left : undefined);
    const toolset = newToolset({ resumeExecutor });
    const api = await newWorker(toolset);
    api.enqueue("one");
    expect(await api.call("one", "read", { file_path: "file" })).toEqual({ isError: false, text: "left" });
    api.terminate("one");
    await expect.poll(() => api.count(/stop$/)).toBe(1);
    await expect(left.start()).rejects.toThrow(/disposed/);
    expect(toolset.executors).toEqual([]);
  });

  it("goes on in another sandbox if the session is claimed once more", async () => {
    const toolset = newToolset();
    const [api, other] = [await newWorker(toolset), await newWorker(toolset)];
    api.enqueue("one");
    other.enqueue("one");
    expect((await api.call("one", "bash", { command: "echo first" })).text).toBe("first");
    expect((await other.call("one", "bash", { command: "echo second; touch second" })).text).toBe("second");
    await expect(toolset.executors[0]?.start()).rejects.toThrow(/disposed/);
    api.terminate("one");
    await expect.poll(() => api.count(/stop$/)).toBe(1);
    expect((await other.call("one", "read", { file_path: "second" })).isError).toBe(false);
  });
});

describe("a container that dies", needs("docker"), () => {
  it("is an error result, also if it was between two calls; the next one works in a new container", async () => {
    const toolset = newToolset(inPlace("a container"));
    const api = await newWorker(toolset);
    api.enqueue("one");
    const losses: string[] = [];
    await api.call("one", "write", { file_path: "file", content: "x" });
    toolset.executors[0]?.onSessionLost?.((reason) => losses.push(reason));
    expect(await api.call("one", "bash", { command: "X=1; kill -9 -1; sleep 600" })).toEqual({
      isError: true,
      text: expect.stringMatching(/^bash: The container .* is lost: /),
    });
    expect(await api.call("one", "bash", { command: 'echo "new$X"' })).toEqual({ isError: false, text: "new" });
    await api.call("one", "bash", { command: "(sleep 0.3; kill -9 -1) &" });
    await expect.poll(() => losses.length).toBe(2);
    expect(await api.call("one", "glob", { pattern: "*" })).toEqual({
      isError: true,
      text: expect.stringMatching(/^glob: the sandbox was lost: The container .* The next call works in a new one/),
    });
    expect(await api.call("one", "bash", { command: "echo new" })).toEqual({ isError: false, text: "new" });
    expect((await api.call("one", "read", { file_path: "none" })).text).toBe("read: none: no such file or directory");
  });
});
