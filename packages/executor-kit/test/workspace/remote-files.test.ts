import { access, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { FileNotFoundError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import { asWorkspaceError, RemoteFiles, type RemoteFileAccess } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";

/** A place that keeps files in memory. */
class Shelf implements RemoteFileAccess {
  readonly files = new Map<string, Buffer>();

  async list(directory: string): Promise<{ path: string; size: number }[]> {
    const inside = [...this.files].filter(([file]) => directory === "." || file.startsWith(`${directory}/`));
    return inside.map(([file, { length }]) => ({ path: file, size: length }));
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

describe("RemoteFiles", () => {
  it("normalises paths, sorts, and hides the executor's own files", async () => {
    const files = new RemoteFiles(new Shelf(), (file) => file.startsWith(".own"));
    for (const file of ["./b.txt", "a/../a/c.txt", ".own-1"]) await files.write(file, file);
    expect(await files.list()).toEqual([
      { path: "a/c.txt", size: 12 },
      { path: "b.txt", size: 7 },
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
});
