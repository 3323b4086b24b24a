import { describe, expect, it, vi } from "vitest";
import { BackendUnavailableError, InvalidInputError, type ReadStreamOptions } from "../../src/index.ts";
import { fileResponse, type FileResponseOptions } from "../../src/web/index.ts";

/** A file of which `stat` says `size`, and which has these bytes when it is read. */
function filesWith(content: string, size: number = content.length) {
  const bytes = new TextEncoder().encode(content);
  return {
    stat: async (path: string) => ({
      path,
      size,
      type: path === "folder" ? ("directory" as const) : ("file" as const),
    }),
    // Ignores `end`, as an executor that was written elsewhere might.
    readStream: (_: string, { start = 0 }: ReadStreamOptions = {}) =>
      ReadableStream.from(bytes.length > start ? [bytes.subarray(start, start + 2), bytes.subarray(start + 2)] : []),
  };
}

const asks = (headers: Record<string, string>, method = "GET"): FileResponseOptions => ({
  request: new Request("http://localhost/", { method, headers }),
});

async function seen(response: Response) {
  const { status, headers } = response;
  return {
    status,
    text: await response.text(),
    length: headers.get("content-length"),
    range: headers.get("content-range"),
  };
}

describe("fileResponse", () => {
  it("sends a file as a download that browsers neither guess about nor run", async () => {
    const response = await fileResponse(filesWith("hello"), "out/a.txt", { headers: { "x-run": "7" } });
    expect(Object.fromEntries(response.headers)).toEqual({
      "accept-ranges": "bytes",
      "cache-control": "private, no-store",
      "content-disposition": `attachment; filename="a.txt"; filename*=UTF-8''a.txt`,
      "content-length": "5",
      "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      "content-type": "text/plain; charset=utf-8",
      "x-content-type-options": "nosniff",
      "x-run": "7",
    });
    expect(await response.text()).toBe("hello");
  });

  it("never sends more bytes than it announced", async () => {
    expect(await seen(await fileResponse(filesWith("hello, and what follows", 5), "a"))).toMatchObject({
      text: "hello",
      length: "5",
    });
    expect(await seen(await fileResponse(filesWith("not empty any more", 0), "a"))).toMatchObject({
      text: "",
      length: "0",
    });
  });

  it.each(["", "h", "hell"])("fails if there are fewer: %j", async (content) => {
    const onError = vi.fn<(error: unknown) => void>();
    const response = await fileResponse(filesWith(content, 5), "a", { onError });
    await expect(response.text()).rejects.toThrow(BackendUnavailableError);
    expect(onError).toHaveBeenCalledOnce();
  });

  it.each([
    ["bytes=0-1", { status: 206, text: "he", range: "bytes 0-1/5" }],
    ["bytes=3-", { status: 206, text: "lo", range: "bytes 3-4/5" }],
    ["bytes=-2", { status: 206, text: "lo", range: "bytes 3-4/5" }],
    ["bytes=-9", { status: 206, text: "hello", range: "bytes 0-4/5" }],
    ["bytes=1-99", { status: 206, text: "ello", range: "bytes 1-4/5" }],
    ["bytes=5-", { status: 416, text: "", range: "bytes */5", length: null }],
    ["bytes=-0", { status: 416, text: "", range: "bytes */5", length: null }],
    ["bytes=2-1", { status: 200, text: "hello", range: null }],
    ["bytes=0-0,2-2", { status: 200, text: "hello", range: null }],
    ["lines=1-2", { status: 200, text: "hello", range: null }],
  ])("answers the range %s", async (range, expected) => {
    const answer = await seen(await fileResponse(filesWith("hello"), "a", asks({ range })));
    expect(answer).toEqual({ length: String(expected.text.length), ...expected });
  });

  it("sends the whole file to a client whose part may be of another one", async () => {
    const options = asks({ range: "bytes=1-", "if-range": '"an-etag"' });
    expect(await seen(await fileResponse(filesWith("hello"), "a", options))).toMatchObject({
      status: 200,
      text: "hello",
    });
  });

  it("answers HEAD without a body", async () => {
    expect(await seen(await fileResponse(filesWith("hello"), "a", asks({}, "HEAD")))).toMatchObject({
      text: "",
      length: "5",
    });
  });

  it.each([
    ["plot.PNG", "image/png", "inline"],
    ["notes.md", "text/markdown; charset=utf-8", "inline"],
    ["page.html", "application/octet-stream", "attachment"],
    ["plot.svg", "image/svg+xml", "attachment"],
    ["paper.pdf", "application/pdf", "attachment"],
    ["constructor", "application/octet-stream", "attachment"],
    ["a.constructor", "application/octet-stream", "attachment"],
  ])("shows %s on a page only if nothing in it can act", async (path, type, disposition) => {
    const { headers } = await fileResponse(filesWith("x"), path, { disposition: "inline" });
    expect(headers.get("content-type")).toBe(type);
    expect(headers.get("content-disposition")).toMatch(new RegExp(`^${disposition};`));
  });

  it.each([
    ['a"; x="b\r\nset-cookie: c', "a%22%3B%20x%3D%22b__set-cookie%3A%20c"],
    ["übung (1)'s.csv", "%C3%BCbung%20%281%29%27s.csv"],
    ["invoice\u202efdp.exe", "invoice_fdp.exe"],
    ["lone \ud800.bin", "lone%20%EF%BF%BD.bin"],
  ])("names the download safely: %j", async (path, encoded) => {
    const header = (await fileResponse(filesWith("x"), `out/${path}`)).headers.get("content-disposition") ?? "";
    expect(header).toMatch(/^attachment; filename="[\x20-\x21\x23-\x5b\x5d-\x7e]*"; filename\*=UTF-8''[\w%.!~-]+$/);
    expect(header.split("''")[1]).toBe(encoded);
  });

  it("rejects a directory and unknown options", async () => {
    await expect(fileResponse(filesWith(""), "folder")).rejects.toThrow(InvalidInputError);
    const options: object = { inline: true };
    await expect(fileResponse(filesWith(""), "a", options)).rejects.toThrow('unknown option "inline"');
  });
});
