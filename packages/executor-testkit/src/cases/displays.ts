import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { isAbsolute } from "node:path";
import type { CodeBlock, Display } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { displays as declared, language, live } from "../needs.ts";
import { followStream } from "../observe/follow-stream.ts";

// The smallest possible PNG: one transparent pixel.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

const showPicture: CodeBlock = {
  language: "python",
  code: `import base64
from IPython.display import Image, display
print("before")
display(Image(data=base64.b64decode("${png}"), format="png"))
print("after")
`,
};

const needs = [declared, language("python")];

/** Rich output. */
export const displays: ConformanceGroup = {
  name: "displays",
  cases: [
    {
      name: "contain a picture's bytes",
      needs,
      async run(kit) {
        const result = await kit.succeed(await kit.shared(), showPicture);
        const data = pictureOf(result.displays);
        assert.ok(Buffer.from(data).equals(Buffer.from(png, "base64")), "the bytes are those of the picture");
        assert.match(result.stdout, /before\n[^]*after\n/);
      },
    },
    {
      name: "contain plain text along with HTML",
      needs: [
        ...needs,
        ({ capabilities }) => (capabilities.isolation === "remote" ? "remote: images only" : undefined),
      ],
      async run(kit) {
        const code = `from IPython.display import HTML, display
display(HTML("<b>bold</b>"))
display({"application/json": {"a": [1, 2]}}, raw=True)
`;
        const { displays: shown } = await kit.succeed(await kit.shared(), { language: "python", code });
        const html = shown.find(({ data }) => data["text/html"] !== undefined);
        assert.equal(html?.data["text/html"], "<b>bold</b>");
        assert.equal(typeof html.data["text/plain"], "string");
        const file = shown.flatMap((display) => display.files).find((each) => each.endsWith(".json"));
        // With indentation it would be many times as long as the limits allow.
        assert.equal(await readFile(file ?? "no file of JSON", "utf8"), '{"a":[1,2]}');
      },
    },
    {
      name: "are left out if their JSON would keep the host busy, and the block goes on",
      needs: [
        ...needs,
        ({ capabilities }) => (capabilities.isolation === "remote" ? "remote: images only" : undefined),
      ],
      async run(kit) {
        const code = `from IPython.display import display
display({"application/json": [{}] * 400_001}, raw=True)
display({"application/json": {str(number): number for number in range(100_001)}}, raw=True)
print("after")
`;
        const result = await kit.succeed(await kit.shared(), { language: "python", code });
        assert.match(result.stdout, /after\n$/);
        assert.match(result.stderr, /left out: JSON of more than 400000 values/);
        assert.match(result.stderr, /left out: JSON of more than 100000 different names/);
        assert.equal(result.truncated, true);
        assert.deepEqual(
          result.displays.filter(({ data }) => "application/json" in data),
          [],
        );
      },
    },
    {
      name: "put into the output what can be read of them, and a name for what cannot",
      needs: [...needs, live],
      async run(kit) {
        const code = `from IPython.display import HTML, Markdown, display
display(Markdown("**4.2**"))
display(HTML("<table><tr><td>Oslo</td><td>7</td></tr></table>"))
display({"application/vnd.plotly.v1+json": {"data": [], "layout": {}}}, raw=True)
`;
        const { stdout } = await kit.succeed(await kit.shared(), { language: "python", code });
        assert.equal(stdout, "**4.2**\nOslo | 7\n[Plotly plot]\n");
      },
    },
    {
      name: "list the absolute paths of the files in which they are saved",
      needs,
      async run(kit) {
        const executor = await kit.shared();
        const { displays: shown } = await kit.succeed(executor, showPicture);
        const files = shown.flatMap((display) => display.files);
        assert.ok(
          files.some((file) => file.endsWith(".png")),
          "no display has a picture's file",
        );
        for (const file of files) {
          assert.ok(isAbsolute(file), file);
          if (file.endsWith(".png")) assert.ok((await readFile(file)).equals(Buffer.from(png, "base64")));
        }
      },
    },
    {
      name: "arrive in the stream just as in the result",
      needs,
      async run(kit) {
        const executor = await kit.shared();
        const followed = followStream(executor.streamCodeBlocks([showPicture]));
        const result = await kit.within("the stream", followed.result);
        const shown = followed.events.filter((event) => event.type === "display");
        assert.deepEqual(
          shown.map(({ display }) => display),
          result.displays,
        );
        assert.equal(shown[0]?.index, 0);
      },
    },
    {
      name: "of all blocks are in the result",
      needs,
      async run(kit) {
        const result = await kit.succeed(await kit.shared(), [showPicture, showPicture]);
        assert.equal(result.displays.filter(({ data }) => data["image/png"] !== undefined).length, 2);
      },
    },
  ],
};

function pictureOf(shown: readonly Display[]): Uint8Array {
  const data = shown.map((display) => display.data["image/png"]).find((value) => value !== undefined);
  assert.ok(data instanceof Uint8Array, "image/png is there as bytes");
  return data;
}
