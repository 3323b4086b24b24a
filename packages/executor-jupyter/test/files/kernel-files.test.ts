import { jupyterPythons, needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { JupyterCodeExecutor } from "../../src/index.ts";
import { anyVersion } from "../support/local-server.ts";
import { PlainServer } from "../support/plain-server.ts";
import { python } from "../support/python.ts";

describe.each(anyVersion)("files of a Python kernel that is reached through itself (%s)", (version) => {
  it(
    "move from one name of a file to another one, which alone stays",
    {
      ...needs(version),
      timeout: 120_000,
    },
    async () => {
      await using server = await PlainServer.start(jupyterPythons[version]);
      await using executor = new JupyterCodeExecutor({ server: server.settings });
      const code =
        "import os\nwith open('a', 'w') as file: file.write('text')\nos.mkdir('d')\nfor name in ('b', 'd/a', 'A'): os.link('a', name)";
      expect(await executor.executeCodeBlocks([python(code)])).toMatchObject({ exitCode: 0 });
      await executor.files.move("a", "b");
      await executor.files.move("d/a", "b");
      await executor.files.move("b", "b");
      expect((await executor.files.list()).map((file) => file.path)).toEqual(["A", "b"]);
      expect(Buffer.from(await executor.files.read("b")).toString()).toBe("text");
    },
  );
});
