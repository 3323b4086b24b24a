import path from "node:path";
import { InvalidInputError } from "@fenced/core";
import { DirectoryFiles } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";
import { extractArchive } from "../../src/archives/extract-archive.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

interface Entry {
  readonly flag?: string;
  readonly content?: Buffer;
  /** The field with the time of modification, as it is written. */
  readonly time?: Buffer;
}

/** An entry of an archive as a stranger may write it. */
function entry(name: string, { flag = "0", content = Buffer.alloc(0), time }: Entry = {}): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write("0000644\0", 100, "latin1");
  header.write(content.length.toString(8).padStart(11, "0"), 124, "latin1");
  header.write("00000000000", 136, "latin1");
  time?.copy(header, 136);
  header.write("        ", 148, "latin1");
  header.write(flag, 156, "latin1");
  header.write("ustar\u000000", 257, "latin1");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

/** An entry whose name is in an entry before it, as GNU tar writes long ones. */
const named = (name: Buffer): Buffer => Buffer.concat([entry("name", { flag: "L", content: name }), entry("short")]);

async function workspace() {
  const files = new DirectoryFiles(path.join(await temporaryDirectory()), { isHidden: () => false });
  const extract = (...entries: readonly Buffer[]) => {
    const archive = async function* (): AsyncGenerator<Uint8Array, void, void> {
      yield Buffer.concat([...entries, Buffer.alloc(1024)]);
    };
    const { signal } = new AbortController();
    return extractArchive({ files, archive: archive(), path: ".", maxBytes: undefined, signal });
  };
  return { files, extract };
}

describe("an archive", () => {
  it("has names that end at their first zero, however many follow", async () => {
    const { files, extract } = await workspace();
    const zeros = Buffer.concat([Buffer.from("name"), Buffer.alloc(1_000_000), Buffer.from("x")]);
    expect(await extract(named(zeros))).toMatchObject({ files: 1 });
    expect(await files.list()).toEqual([{ path: "name", type: "file", size: 0 }]);
  });

  it("is refused if a path in it is too long or too deep, before that costs anything", async () => {
    const { files, extract } = await workspace();
    for (const name of ["d/".repeat(500_000), "x".repeat(5000), "d/".repeat(1000)]) {
      await expect(extract(named(Buffer.from(`${name}file`)))).rejects.toThrow(
        /more than 4096 characters or 256 parts/,
      );
    }
    await expect(extract(named(Buffer.from(`${"d/".repeat(1000)}file`)))).rejects.toThrow(InvalidInputError);
    expect(await files.list(".", { directories: true })).toEqual([]);
    await extract(named(Buffer.from(`${"d/".repeat(255)}file`)));
    expect(await files.list()).toHaveLength(1);
  });

  it("may have times before 1970", async () => {
    const { files, extract } = await workspace();
    await extract(entry("old", { time: Buffer.alloc(12, 0xff) }));
    expect((await files.stat("old")).modifiedAt).toEqual(new Date(0));
  });
});
