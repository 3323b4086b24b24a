import { access, readdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FileNotFoundError, InvalidInputError, WorkspacePathError, type FileEntry, type FileStat } from "@fenced/core";
import { asWorkspaceError, RemoteFiles, type RemoteFileAccess } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";

/** A place that keeps files in memory. */
class Shelf implements RemoteFileAccess {
  readonly files = new Map<string, Buffer>();

  async *list(directory: string): AsyncGenerator<FileEntry, void, void> {
    for (const [file, { length }] of this.files) {
      if (directory === "." || file.startsWith(`${directory}/`)) yield { path: file, type: "file", size: length };
    }
  }

  async stat(file: string): Promise<FileStat> {
    const content = this.files.get(file);
    if (!content) throw asWorkspaceError(Object.assign(new Error("none"), { code: "ENOENT" }), file);
    return { path: file, type: "file", size: content.length };
  }

  async *content(file: string): AsyncGenerator<Uint8Array, void, void> {
    const content = this.files.get(file);
    if (!content) throw asWorkspaceError(Object.assign(new Error("none"), { code: "ENOENT" }), file);
    for (const byte of content) yield Buffer.from([byte]);
  }

  async put(file: string, content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of content) chunks.push(chunk);
    this.files.set(file, Buffer.concat(chunks));
  }

  async remove(file: string): Promise<void> {
    this.files.delete(file);
  }
}

/** A place that accepts nothing, and removes local files while they are uploaded. */
class ClosedShelf extends Shelf {
  readonly gone: string[] = [];
  left = 0;

  override async *list(): AsyncGenerator<FileEntry, void, void> {
    try {
      for (let count = 0; ; count += 1) yield { path: `file-${count}`, type: "file", size: 0 };
    } finally {
      this.left += 1;
    }
  }

  override async *content(): AsyncGenerator<Uint8Array, void, void> {
    try {
      for (const chunk = Buffer.alloc(65_536); ;) yield chunk;
    } finally {
      this.left += 1;
    }
  }

  override async put(): Promise<void> {
    for (const local of this.gone) await rm(local);
    // Long enough to find out that the file is gone.
    await sleep(50);
    throw new Error("closed");
  }
}

describe("RemoteFiles", () => {
  it("normalises paths, sorts, and hides the executor's own files", async () => {
    const files = new RemoteFiles(new Shelf(), (file) => file.startsWith(".own"));
    for (const file of ["./b.txt", "a/../a/c.txt", ".own-1"]) await files.write(file, file);
    expect(await files.list()).toEqual([
      { path: "a/c.txt", type: "file", size: 12 },
      { path: "b.txt", type: "file", size: 7 },
    ]);
    expect(Buffer.from(await files.read("a//c.txt")).toString()).toBe("a/../a/c.txt");
    await expect(files.read("../x")).rejects.toSatisfy(WorkspacePathError.isInstance);
    await expect(files.remove("a/..")).rejects.toSatisfy(InvalidInputError.isInstance);
  });

  it("uploads all or nothing, and downloads under relative paths", async () => {
    const shelf = new Shelf();
    const files = new RemoteFiles(shelf);
    const directory = await temporaryDirectory();
    await writeFile(path.join(directory, "one.txt"), "one");
    await expect(files.upload([path.join(directory, "one.txt"), path.join(directory, "none.txt")])).rejects.toSatisfy(
      FileNotFoundError.isInstance,
    );
    expect(shelf.files.size).toBe(0);
    await files.upload([path.join(directory, "one.txt")]);
    await files.write("empty/file", "");
    const copies = await files.download(["one.txt", "empty/file"], path.join(directory, "down"));
    expect(await Promise.all(copies.map((copy) => readFile(copy, "utf8")))).toEqual(["one", ""]);
    await expect(files.download(["missing/x"], path.join(directory, "down"))).rejects.toSatisfy(
      FileNotFoundError.isInstance,
    );
    await expect(access(path.join(directory, "down/missing"))).rejects.toThrow("ENOENT");
  });

  it("keeps no piece of a file that arrives byte by byte", async () => {
    const memory = Buffer.alloc(1);
    class ReusingShelf extends Shelf {
      override async *content(file: string): AsyncGenerator<Uint8Array, void, void> {
        for await (const piece of super.content(file)) {
          memory.set(piece);
          yield memory;
        }
      }
    }
    const files = new RemoteFiles(new ReusingShelf());
    await files.write("a", "0123456789");
    expect(Buffer.from(await files.read("a")).toString()).toBe("0123456789");
  });

  it("does not load an endless file or listing into memory", async () => {
    const shelf = new ClosedShelf();
    const files = new RemoteFiles(shelf, undefined, { readBytes: 1000, listEntries: 100, listCharacters: 10_000 });
    await expect(files.read("a")).rejects.toThrow(/"a" is larger than 1000 bytes.*files\.download\(\)/);
    await expect(files.list("b")).rejects.toThrow(/too many files below "b".*100 entries/);
    expect(shelf.left).toBe(2);
    const short = new RemoteFiles(shelf, undefined, { readBytes: 1000, listEntries: 1e9, listCharacters: 10_000 });
    await expect(short.list()).rejects.toSatisfy(InvalidInputError.isInstance);
    await expect(new RemoteFiles(shelf).read("a")).rejects.toSatisfy(InvalidInputError.isInstance);
  });

  it("leaves nothing open when an upload or a download fails", async () => {
    const shelf = new ClosedShelf();
    const files = new RemoteFiles(shelf);
    const directory = await temporaryDirectory();
    const local = path.join(directory, "one.txt");
    await writeFile(local, "one");
    shelf.gone.push(local);
    await expect(files.upload([local])).rejects.toThrow("closed");
    // An error of a stream without a listener would end this program.
    await expect(readdir(directory)).resolves.toEqual([]);
    await writeFile(path.join(directory, "file"), "");
    await expect(files.download(["a/b"], path.join(directory, "file"))).rejects.toThrow("ENOTDIR");
    expect(shelf.left).toBe(1);
  });
});

describe("RemoteFiles, when something breaks", () => {
  it("leaves no part of a file whose download failed", async () => {
    const shelf = new Shelf();
    shelf.content = async function* broken() {
      yield Buffer.from("half");
      throw new Error("connection lost");
    };
    const directory = await temporaryDirectory();
    await expect(new RemoteFiles(shelf).download(["a.txt"], directory)).rejects.toThrow("connection lost");
    expect(await readdir(directory)).toEqual([]);
  });

  it("provides content that can be sent twice, and sends nothing if one file is too large", async () => {
    const directory = await temporaryDirectory();
    const [small, large] = [path.join(directory, "small"), path.join(directory, "large")];
    await writeFile(small, "12");
    await writeFile(large, "12345");
    const shelf = Object.assign(new Shelf(), { maxFileBytes: 4 });
    const sent: string[] = [];
    shelf.put = async (file, content) => {
      for (let attempt = 0; attempt < 2; attempt += 1) {
        for await (const chunk of content) sent.push(`${file} ${Buffer.from(chunk).toString()}`);
      }
    };
    const files = new RemoteFiles(shelf);
    await expect(files.upload([small, large])).rejects.toSatisfy((error) => InvalidInputError.isInstance(error));
    await expect(files.write("large", "12345")).rejects.toSatisfy((error) => InvalidInputError.isInstance(error));
    expect(sent).toEqual([]);
    await files.upload([small]);
    expect(sent).toEqual(["small 12", "small 12"]);
  });
});
