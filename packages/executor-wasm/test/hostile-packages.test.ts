import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { nightly, slow } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { PackagePlace } from "./fixtures/package-place.ts";
import { PackageServer } from "./fixtures/package-server.ts";
import { wheel } from "./fixtures/wheel.ts";
import type { ZipEntry } from "./fixtures/zip.ts";

const place = new PackagePlace();
const { wheels } = place;
const minutes = { timeout: 240_000, ...slow };

describe("hostile wheels", minutes, () => {
  it.each<[what: string, entry: ZipEntry, reason: RegExp]>([
    ["a path that leads out", { name: "../../../home/pyodide/x.py", data: "" }, /not the path of a file in a package/],
    ["an absolute path", { name: "/home/pyodide/x.py", data: "" }, /not the path of a file in a package/],
    ["a Windows path", { name: String.raw`tool\..\..\x.py`, data: "" }, /not the path of a file in a package/],
    ["a drive", { name: "C:/x.py", data: "" }, /not the path of a file in a package/],
    ["control characters", { name: "tool\u001B[2J.py", data: "" }, /not the path of a file in a package/],
    ["an endless depth", { name: `${"a/".repeat(500)}x.py`, data: "" }, /not the path of a file in a package/],
    ["a link", { name: "tool/link", data: "/etc/passwd", mode: 0o120_777 }, /a link or a special file/],
    ["a device", { name: "tool/device", data: "", mode: 0o020_666 }, /a link or a special file/],
    ["a file that is also a directory", { name: "tool.py/x.py", data: "" }, /in a directory that is also a file/],
    ["more content than declared", { name: "tool/x", data: "x".repeat(100_000), size: 10 }, /is damaged at 'tool\/x'/],
    ["an enormous size", { name: "tool/x", data: "x", size: 4_000_000_000 }, /larger than 1024 MiB/],
  ])("with %s are rejected", async (_what, entry, reason) => {
    place.add(wheel({ name: "tool", entries: [entry] }));
    expect(await place.refusal({ wheels, install: ["tool"] })).toMatch(reason);
  });

  it("that unpack to more than the limit are rejected, and leave nothing behind", nightly, async () => {
    const zeros = Buffer.alloc(300 * 2 ** 20);
    place.add(
      ...[1, 2, 3, 4].map((each) => wheel({ name: `bomb${each}`, entries: [{ name: `zeros${each}`, data: zeros }] })),
    );
    // Also creates what every installation keeps.
    expect(await place.refusal({ wheels, install: ["none"] })).toMatch(/there is no wheel for it/);
    const before = fs.readdirSync(place.cacheDirectory);
    const install = ["bomb1", "bomb2", "bomb3", "bomb4"];
    expect(await place.refusal({ wheels, install })).toMatch(/The packages would be larger than 1024 MiB/);
    expect(fs.readdirSync(place.cacheDirectory)).toEqual(before);
  });

  it("with too many entries, or with too long METADATA, are rejected", nightly, async () => {
    const entries = Array.from({ length: 20_001 }, (_, count) => ({ name: `tool/${count}`, data: "" }));
    place.add(wheel({ name: "many", entries }), wheel({ name: "long", metadata: `\n${"x".repeat(3_000_000)}` }));
    expect(await place.refusal({ wheels, install: ["many"] })).toMatch(/more than 20000 entries/);
    expect(await place.refusal({ wheels, install: ["long"] })).toMatch(/has a METADATA of 30000\d\d bytes/);
  });

  it("that are not archives, or contain another package, are rejected", async () => {
    const { content } = wheel({ name: "other" });
    const filename = "tool-1.0-py3-none-any.whl";
    place.add({ filename, content, metadata: "" });
    expect(await place.refusal({ wheels, install: ["tool"] })).toMatch(/contains a different package or version/);
    fs.writeFileSync(path.join(wheels, filename), content.subarray(0, content.length / 2));
    expect(await place.refusal({ wheels, install: ["tool"] })).toMatch(/is not a wheel: File is not a zip file/);
    fs.rmSync(path.join(wheels, filename));
    fs.symlinkSync("/etc/hostname", path.join(wheels, filename));
    expect(await place.refusal({ wheels, install: ["tool"] })).toMatch(/there is no wheel for it/);
  });

  it("that depend on each other in a circle can be installed", nightly, async () => {
    place.add(wheel({ name: "egg", requires: ["hen"] }), wheel({ name: "hen", requires: ["egg", "hen"] }));
    expect(await place.run({ wheels, install: ["hen"] }, "import egg, hen; print(egg.version)")).toBe("1.0\n");
  });

  it("whose requirements lead to an endless search are rejected", async () => {
    const names = Array.from({ length: 30 }, (_, count) => `p${count}`);
    const all = names.flatMap((name, count) =>
      ["1.0", "2.0"].map((version) => {
        const next = names[count + 1];
        return wheel({ name, version, requires: next === undefined ? ["never"] : [next] });
      }),
    );
    place.add(...all, wheel({ name: "never", metadata: "Requires-Python: <3\n" }));
    expect(await place.refusal({ wheels, install: ["p0"] })).toMatch(
      /No set of at most 500 wheels was found in 20000 steps.* never: /,
    );
  });

  it("run nothing before they are imported, and are then restricted like all code", async () => {
    place.add(
      wheel({
        name: "tool",
        files: {
          "tool.py": "import os\nprint(os.listdir('/'), os.system('true') if False else '')\nopen('/etc/passwd')\n",
          "now.pth": "import sys; sys.stderr.write('ran')\n",
          "sitecustomize.py": "print('ran')\n",
          "setup.py": "print('ran')\n",
          "deep.py": `x = ${"(".repeat(5000)}${")".repeat(5000)}\n`,
        },
      }),
    );
    expect(await place.run({ wheels, install: ["tool"] }, "print('block')")).toBe("block\n");
    expect(await place.run({ wheels, install: ["tool"] }, "import tool")).toMatch(/FileNotFoundError.*\/etc\/passwd/);
  });
});

describe("a hostile index", minutes, () => {
  const tool = wheel({ name: "tool" });
  const refusal = async (server: PackageServer): Promise<string> =>
    place.refusal({ index: server.index, install: ["tool"] });

  it.each(nightly.skip ? [true] : [true, false])(
    "that serves other files than it promised, or no hashes, is rejected (HTML: %s)",
    async (html) => {
      await using wrong = await PackageServer.start([tool], { html, hash: "wrong" });
      expect(await refusal(wrong)).toMatch(/is not the file that the index promised: its SHA-256 is [0-9a-f]{64}/);
      await using none = await PackageServer.start([tool], { html, hash: "none" });
      expect(await refusal(none)).toMatch(/gives no SHA-256 for tool-1\.0/);
      expect(none.asked).toEqual(["/simple/tool/"]);
    },
  );

  it("cannot lead to another origin, by links or by redirects", async () => {
    await using inner = await PackageServer.start([tool]);
    await using links = await PackageServer.start([tool], { files: `${inner.origin}/files/` });
    expect(await refusal(links)).toMatch(/The index links to http:\/\/127\.0\.0\.1:\d+\/files/);
    await using local = await PackageServer.start([tool], { files: "file:///etc/" });
    expect(await refusal(local)).toMatch(/The index links to file:\/\/\/etc/);
    await using redirects = await PackageServer.start([tool], {
      answer: ({ url }, response) => {
        response.writeHead(302, { location: `${inner.origin}${url}` }).end();
        return true;
      },
    });
    expect(await refusal(redirects)).toMatch(/The index links to http/);
    expect(inner.asked).toEqual([]);
  });

  it("that redirects in a circle, breaks off or sends unreadable pages is rejected", nightly, async () => {
    await using circle = await PackageServer.start([tool], {
      answer: ({ url }, response) => {
        response.writeHead(301, { location: url }).end();
        return true;
      },
    });
    expect(await refusal(circle)).toMatch(/redirects \S+ more than 5 times/);
    expect(circle.asked).toHaveLength(6);
    await using broken = await PackageServer.start([tool], {
      answer: (_request, response) => {
        response.writeHead(200, { "content-length": 100 }).write("x");
        response.destroy();
        return true;
      },
    });
    expect(await refusal(broken)).toMatch(/could not be fetched/);
    for (const text of ["[]", '{"files":[{}]}', '{"files":{"a":1}}', "[".repeat(100_000), "\u0000"]) {
      await using server = await PackageServer.start([tool], {
        answer: (_request, response) => {
          response.setHeader("content-type", "application/vnd.pypi.simple.v1+json");
          response.end(text);
          return true;
        },
      });
      expect(await refusal(server)).toMatch(/no readable page for tool|crashed/);
    }
    await using failing = await PackageServer.start([tool], {
      answer: (_request, response) => {
        response.writeHead(500).end();
        return true;
      },
    });
    expect(await refusal(failing)).toMatch(/The index answered 500/);
  });

  it("that sends an endless file is rejected", async () => {
    const piece = Buffer.alloc(65_536, " ");
    await using server = await PackageServer.start([tool], {
      answer: (_request, response) => {
        const more = (): void => {
          while (response.write(piece));
          response.once("drain", more);
        };
        more();
        return true;
      },
    });
    expect(await refusal(server)).toMatch(/sent a file of more than 32 MiB/);
  });

  it("that never answers is rejected after thirty seconds, and stop() does not wait for it", nightly, async () => {
    const asked = new AbortController();
    const answer = (): boolean => {
      asked.abort();
      return true;
    };
    await using server = await PackageServer.start([tool], { answer });
    const executor = place.open({ index: server.index, install: ["tool"] });
    const [started] = await Promise.allSettled([
      executor.start(),
      once(asked.signal, "abort").then(() => executor.stop()),
    ]);
    expect(started).toMatchObject({ status: "rejected", reason: { message: expect.stringMatching(/stopped/) } });
    expect(await refusal(server)).toMatch(/no data arrived for 30 seconds/);
  });
});
