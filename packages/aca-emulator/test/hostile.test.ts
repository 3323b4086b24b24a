import { lstat, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs, nightly } from "@fenced/test-support";
import { isAlive } from "@fenced/test-support/is-alive";
import { describe, expect, it, onTestFinished } from "vitest";
import { Client, current, upload } from "./client.ts";
import { connectTo, exchange } from "./raw-request.ts";

/** A directory of the host with one file that no session may touch. */
async function outside(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "emulator-outside-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await mkdir(join(directory, "inner"));
  await writeFile(join(directory, "inner", "secret"), "secret");
  return directory;
}

const exchanger = (target: string): string => `
import ctypes, os, threading
libc = ctypes.CDLL(None, use_errno=True)
os.chdir("/mnt/data")
os.makedirs("sub/inner", exist_ok=True)
os.symlink(${JSON.stringify(target)}, "link")
def swap():
    while True:
        libc.renameat2(-100, b"sub", -100, b"link", 2)
threading.Thread(target=swap, daemon=True).start()
`;

describe.skipIf(process.platform !== "linux")("code that swaps a directory for a link", needs("python3"), () => {
  // Without namespaces the link leads to the same place for the code and for the emulator.
  it("cannot make the emulator delete, read or write files outside", { timeout: 120_000 }, async () => {
    const target = await outside();
    await using client = await Client.open({ namespaces: false });
    expect((await client.execute(exchanger(target))).json.status).toBe("Succeeded");
    for (let round = 0; round < 150; round += 1) {
      const [removed, read] = await Promise.all([
        client.call("DELETE", "files/inner", { query: { path: "sub" } }),
        client.call("GET", "files/secret/content", { query: { path: "sub/inner" } }),
        client.call("POST", "files", { body: upload("planted", "x"), query: { path: "sub/inner" } }),
        client.call("DELETE", "files/sub"),
      ]);
      expect(read.text).not.toBe("secret");
      expect(removed.status).not.toBe(500);
    }
    expect(await readFile(join(target, "inner", "secret"), "utf8")).toBe("secret");
    await expect(lstat(join(target, "inner", "planted"))).rejects.toThrow("ENOENT");
  });
});

describe("what code leaves behind", needs("python3"), () => {
  it("may be a deep tree: the session can still be deleted", { timeout: 120_000, ...nightly }, async () => {
    await using client = await Client.open();
    const dig = "import os; os.chdir('/mnt/data')\nfor _ in range(1500): os.mkdir('d' * 10); os.chdir('d' * 10)";
    expect((await client.execute(dig)).json.status).toBe("Succeeded");
    expect((await client.call("GET", "files", { query: { recursive: "true" } })).status).toBeLessThan(500);
    expect((await client.call("DELETE", "files/dddddddddd")).status).toBe(204);
    expect((await client.call("GET", "files")).json.value).toEqual([]);
    await client.execute(`os.chdir('/mnt/data')\n${dig}`);
    expect((await client.call("DELETE", "session")).status).toBe(204);
  });

  it("may be too many files to list: the list is an error", { timeout: 120_000, ...nightly }, async () => {
    await using client = await Client.open();
    const litter = "import os\nfor n in range(20001): os.close(os.open(f'/mnt/data/{n}', os.O_CREAT))";
    expect((await client.execute(litter, { timeoutInSeconds: 100 })).json.status).toBe("Succeeded");
    expect(await client.call("GET", "files")).toMatchObject({ status: 400, json: { error: { code: "TooManyFiles" } } });
  });

  it("may be a huge value: it is cut, and the session continues", async () => {
    await using client = await Client.open();
    const { json } = await client.execute("x = 1\n'x' * 200_000_000", { timeoutInSeconds: 100 });
    expect(json.status).toBe("Succeeded");
    expect(String(json.result.executionResult).length).toBeLessThan(20_000_000);
    expect((await client.execute("x")).json.result.executionResult).toBe(1);
  });

  // The supervisor's standard output, by pidfd_open and pidfd_getfd.
  const take = `import ctypes, os
call = ctypes.CDLL(None, use_errno=True).syscall
out = call(438, call(434, os.getppid(), 0), 1, 0)
out`;

  it("may be a forged message of millions of values: it is not parsed, and the session ends", async ({ skip }) => {
    await using client = await Client.open({ namespaces: false });
    const taken = (await client.execute(take)).json.result.executionResult;
    skip(taken === -1, "code may not take its parent's descriptors here");
    const forge = `import time
with os.fdopen(os.dup(out), "wb") as pipe: pipe.write(b"[" + b"0," * 1_000_000 + b"0]\\n")
time.sleep(20)`;
    expect((await client.execute(forge)).json).toMatchObject({ status: "Failed", error: { code: "SessionEnded" } });
  });

  it("may be forged messages to the emulator, which stays up", async ({ skip }) => {
    await using client = await Client.open({ namespaces: false });
    const taken = (await client.execute(take)).json.result.executionResult;
    skip(taken === -1, "code may not take its parent's descriptors here");
    await client.execute("os.write(out, b'no JSON\\n{\"id\":1}\\n') and None");
    expect((await client.execute("6 * 7")).json.result.executionResult).toBe(42);
    const flood = "while True: os.write(out, b'x' * 65536)";
    expect((await client.execute(flood, { timeoutInSeconds: 200 })).json).toMatchObject({
      status: "Failed",
      error: { code: "SessionEnded" },
    });
    expect((await client.call("GET", "metadata")).status).toBe(200);
  });

  it.each(["SIGSTOP", "SIGKILL"])(
    "may be a supervisor that got %s: the execution ends, and the session with everything that it started",
    { timeout: 120_000 },
    async (signal) => {
      const pids = join(await outside(), "pids");
      await using client = await Client.open({ namespaces: false });
      const start = `import os, signal, subprocess, time
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
open(${JSON.stringify(pids)}, "w").write(f"{os.getpid()} {child.pid}") and None`;
      // By itself: it takes longer than a second on a busy machine.
      expect((await client.execute(start)).json).toMatchObject({ status: "Succeeded" });
      const send = `os.kill(os.getppid(), signal.${signal})\ntime.sleep(1000)`;
      const { json } = await client.execute(send, { timeoutInSeconds: 1 });
      expect(json).toMatchObject({ status: "Failed" });
      expect((await client.call("DELETE", "session")).status).toBe(204);
      const started = (await readFile(pids, "utf8")).split(" ").map(Number);
      expect(started).toHaveLength(2);
      expect(started.filter(isAlive)).toEqual([]);
    },
  );
});

describe.skipIf(process.getuid?.() !== 0)("a session of an emulator that runs as root", needs("python3"), () => {
  it("cannot unmount /tmp or create devices", async ({ skip }) => {
    await using client = await Client.open();
    skip(client.emulator.fence === "none", "there are no namespaces here");
    const umount = "import os, subprocess; subprocess.run(['umount', '/tmp']).returncode";
    expect((await client.execute(umount)).json.result.executionResult).not.toBe(0);
    expect((await client.execute("os.mknod('/tmp/disk', 0o60600, 0x800)")).json.error.message).toMatch(
      /^PermissionError/,
    );
  });
});

describe("an upload", needs("python3"), () => {
  it("that is interrupted leaves the old file, and never shows a partial one", async () => {
    await using client = await Client.open();
    await client.call("POST", "files", { body: upload("data.txt", "the whole file") });
    const { emulator } = client;
    const socket = connectTo(emulator);
    const { pathname, host } = new URL(emulator.endpoint);
    const head = '--edge\r\nContent-Disposition: form-data; name="file"; filename="data.txt"\r\n\r\n';
    socket.write(
      `POST ${pathname}/files?api-version=${current}&identifier=session-1 HTTP/1.1\r\nHost: ${host}\r\n` +
        `Authorization: Bearer ${emulator.token()}\r\nContent-Type: multipart/form-data; boundary=edge\r\n` +
        `Content-Length: 1000000\r\n\r\n${head}${"half ".repeat(1000)}`,
    );
    const look = "print(open('/mnt/data/data.txt').read(), __import__('os').listdir('/mnt/data'))";
    for (let times = 0; times < 5; times += 1) {
      expect((await client.execute(look)).json.result.stdout).toBe("the whole file ['data.txt']\n");
    }
    socket.destroy();
    await client.call("GET", "metadata");
    expect((await client.execute(look)).json.result.stdout).toBe("the whole file ['data.txt']\n");
  });

  it("without its last boundary is rejected", async () => {
    await using client = await Client.open();
    const body = '--edge\r\nContent-Disposition: form-data; name="file"; filename="data.txt"\r\n\r\nhalf';
    const { pathname, host } = new URL(client.emulator.endpoint);
    const answer = await exchange(
      client.emulator,
      `POST ${pathname}/files?api-version=${current}&identifier=session-1 HTTP/1.1\r\nHost: ${host}\r\n` +
        `Authorization: Bearer ${client.emulator.token()}\r\nContent-Type: multipart/form-data; boundary=edge\r\n` +
        `Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*"code":"InvalidRequestBody"/s);
    expect((await client.call("GET", "files")).json.value).toEqual([]);
  });
});

describe("paths", needs("python3"), () => {
  it.for(["files/%", "files/%E0%A4%A/content", "executions/%"])(
    "with invalid percent-encoding get 400: %s",
    async (path) => {
      await using client = await Client.open();
      expect(await client.call("GET", path)).toMatchObject({ status: 400, json: { error: { code: "InvalidPath" } } });
    },
  );

  it("follow links within the workspace, but not links that lead outside", async () => {
    const target = await outside();
    await using client = await Client.open({ namespaces: false });
    await client.call("POST", "files", { body: upload("a.txt", "inside"), query: { path: "dir/sub" } });
    await client.execute(
      `import os; os.chdir('/mnt/data'); os.symlink('dir/sub', 'in'); os.symlink('../..', 'dir/sub/up'); os.symlink(${JSON.stringify(target)}, 'out')`,
    );
    expect((await client.call("GET", "files/a.txt/content", { query: { path: "in" } })).text).toBe("inside");
    expect((await client.call("GET", "files/a.txt/content", { query: { path: "in/up/dir/sub" } })).text).toBe("inside");
    for (const path of ["out/inner", "in/up/out/inner", "out"]) {
      expect((await client.call("GET", "files/secret/content", { query: { path } })).status).toBe(400);
    }
    await symlink(join(target, "inner"), join(target, "again"));
    expect((await client.call("DELETE", "files/out")).status).toBe(204);
    expect(await readFile(join(target, "inner", "secret"), "utf8")).toBe("secret");
  });
});
