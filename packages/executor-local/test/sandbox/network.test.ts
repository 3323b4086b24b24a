import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { type AllowedNetwork, packageIndexes } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { playHost, playTlsHost } from "@fenced/test-support/loopback-hosts";
import { describe, expect, it } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";

/** Names lead to the loopback interface of this machine, where servers play hosts. */
const network: AllowedNetwork = { allow: ["good.example", "127.0.0.1"], resolve: async () => ["127.0.0.1"] };

describe("a sandbox's network policy", { ...needs("bubblewrap", "python3"), timeout: 120_000 }, () => {
  it("lets programs reach the listed hosts, but nothing else on this machine or beyond", async () => {
    const port = await playHost();
    await using executor = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", network });
    const url = `http://good.example:${port}/page`;
    const direct = `
import os, socket
print(os.listdir("/proc/sys/net/ipv4/conf"), os.environ["HTTPS_PROXY"].startswith("http://127.0.0.1:"))
for address in [("192.0.2.1", 80), ("127.0.0.1", ${port})]:
    print(socket.socket().connect_ex(address) != 0)
`;
    const result = await executor.executeCodeBlocks([
      { language: "python", code: `import urllib.request\nprint(urllib.request.urlopen("${url}").read().decode())` },
      { language: "python", code: direct },
      { language: "python", code: `import urllib.request\nurllib.request.urlopen("https://evil.example")` },
    ]);
    expect(result.output).toContain(`host of good.example:${port}: GET /page\n`);
    expect(result.output).toContain("['all', 'default', 'lo'] True\nTrue\nTrue\n");
    expect(result.output).toContain("403 evil.example is not in this executor's network policy");
    expect(result.network).toEqual([expect.objectContaining({ allowed: false, host: "evil.example", port: 443 })]);
    expect(() => executor.dumpComponent()).toThrow(/network\.resolve/);
  });
});

describe(
  "clients in a sandbox",
  { ...needs("bubblewrap", "python3", "node", "openssl", "root"), timeout: 120_000 },
  () => {
    it("use the proxy: npm installs from the registry, curl fetches, and both are refused elsewhere", async () => {
      const tarball = await makePackage();
      const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
      const dist = { tarball: "https://registry.npmjs.org/tiny/-/tiny-1.0.0.tgz", integrity };
      const version = { name: "tiny", version: "1.0.0", dist };
      const about = { name: "tiny", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } };
      const address = "127.77.0.2";
      const { ca } = await playTlsHost(
        "registry.npmjs.org",
        ({ url = "" }, response) => {
          if (url.endsWith(".tgz")) response.end(tarball);
          else response.setHeader("content-type", "application/json").end(JSON.stringify(about));
        },
        { address, port: 443 },
      );
      await using executor = new LocalCommandLineCodeExecutor({
        isolation: "os-sandbox",
        network: { allow: [...packageIndexes, address], resolve: async () => [address] },
      });
      const code = `cat > ca.pem <<'END'
${ca}END
npm="npm --no-audit --no-fund --no-update-notifier --fetch-retries=0 --cafile ca.pem"
$npm install --registry https://registry.npmjs.org tiny && node -p 'require("tiny")'
curl -sS --cacert ca.pem https://registry.npmjs.org/tiny | head -c 14
curl -sS https://evil.example || echo " curl $?"
$npm view --registry https://other.example tiny || echo "npm $?"
`;
      const result = await executor.executeCodeBlocks([{ language: "bash", code }]);
      expect(result.output).toMatch(/added 1 package[^]*\n42\n\{"name":"tiny"[^]*403[^]* curl 56\n[^]*npm 1\n$/);
      expect(result.network).toMatchObject([{ host: "evil.example" }, { host: "other.example" }]);
    });
  },
);

/** An npm package, as the registry serves it. */
async function makePackage(): Promise<Buffer> {
  const directory = await temporaryDirectory();
  await mkdir(path.join(directory, "package"));
  await writeFile(path.join(directory, "package/package.json"), JSON.stringify({ name: "tiny", version: "1.0.0" }));
  await writeFile(path.join(directory, "package/index.js"), "module.exports = 42;\n");
  await promisify(execFile)("tar", ["-czf", "tiny.tgz", "package"], { cwd: directory });
  return readFile(path.join(directory, "tiny.tgz"));
}
