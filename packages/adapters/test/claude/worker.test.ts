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
