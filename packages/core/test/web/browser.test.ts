import path from "node:path";
import { rolldown } from "rolldown";
import { expect, it } from "vitest";

it("has no import of Node, so that browsers can load it", async () => {
  const bundle = await rolldown({
    input: path.join(import.meta.dirname, "../../src/web/index.ts"),
    platform: "browser",
    resolve: { conditionNames: ["@fenced/source", "browser", "import"] },
    // What cannot be resolved for a browser stays an import.
    onLog: () => {},
  });
  const { output } = await bundle.generate({ format: "esm", codeSplitting: false });
  await bundle.close();
  expect(output[0].code.length).toBeGreaterThan(1000);
  expect(output[0].imports).toEqual([]);
});
