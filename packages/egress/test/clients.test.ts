import { execFile, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { type BackendName, needs } from "@fenced/test-support";
import { playHost, playTlsHost } from "@fenced/test-support/loopback-hosts";
import { describe, expect, onTestFinished, test } from "vitest";
import { run, startProxy } from "./support/places.ts";

function has(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args).status === 0;
}

async function temporary(): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), "egress-clients-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

/** Node reads proxies from the environment since these versions. */
function nodeFetches(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 21);
}

/** Clients, each with the backends that it needs and what it is started with. */
const programs: Record<string, readonly [readonly BackendName[], string, ...string[]]> = {
  curl: [["curl"], "curl", "-sS", "-m", "10"],
  urllib: [
    ["python3"],
    "python3",
    "-c",
    "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())",
  ],
  requests: [
    ["python3"],
    "python3",
    "-c",
    "import sys, requests; a = requests.get(sys.argv[1]); print(a.reason, a.text)",
  ],
  fetch: [[], process.execPath, "-e", "fetch(process.argv[1]).then(async (a) => console.log(await a.text()))"],
};

const missing = new Set([
  ...(has("python3", "-c", "import requests") ? [] : ["requests"]),
  ...(nodeFetches() ? [] : ["fetch"]),
]);

for (const [name, [backends, program, ...args]] of Object.entries(programs)) {
  if (missing.has(name)) continue;
  test(`${name} reaches listed hosts, and shows why it does not reach others`, needs(...backends), async () => {
    const port = await playHost();
    const proxy = await startProxy({ allow: ["good.example", "127.0.0.1"] });
    const env = { http_proxy: proxy.url, https_proxy: proxy.url, NODE_USE_ENV_PROXY: "1" };
    const good = await run(program, [...args, `http://good.example:${port}/page`], env);
    expect(good).toMatchObject({ code: 0, output: expect.stringContaining(`host of good.example:${port}: GET /page`) });
    const plain = await run(program, [...args, "http://evil.example/"], env);
    const tunnel = await run(program, [...args, "https://evil.example/"], env);
    expect(tunnel.code).not.toBe(0);
    expect(tunnel.output).toContain("403");
    const words = "evil.example is not in this executor's network policy";
    expect(proxy.decisions.filter(({ allowed }) => !allowed).map(({ reason }) => reason)).toContain(words);
    // urllib shows the reason in its exception, the others in the answer.
    expect(`${plain.output}${tunnel.output}`).toContain(words);
  });
}

describe("package managers", needs("openssl", "python3"), () => {
  test("pip installs only from a listed index through the proxy", async () => {
    const directory = await temporary();
    const wheel = "tiny-1.0-py3-none-any.whl";
    const make = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("tiny.py", "answer = 42\\n")
    z.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n")
    z.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr("tiny-1.0.dist-info/RECORD", "")
`;
    await promisify(execFile)("python3", ["-c", make, path.join(directory, wheel)]);
    const bytes = await readFile(path.join(directory, wheel));
    const { port, ca } = await playTlsHost("index.example", (request, response) => {
      if (request.url?.endsWith(".whl") === true) response.end(bytes);
      else response.setHeader("content-type", "text/html").end(`<a href="/files/${wheel}">${wheel}</a>`);
    });
    const cert = path.join(directory, "ca.pem");
    await writeFile(cert, ca);
    const proxy = await startProxy({ allow: [`index.example:${port}`, "127.0.0.1"] });
    const env = {
      HTTPS_PROXY: proxy.url,
      PIP_CERT: cert,
      PIP_DISABLE_PIP_VERSION_CHECK: "1",
      PIP_CONFIG_FILE: "/dev/null",
    };
    const pip = (host: string): ReturnType<typeof run> => {
      const index = ["--index-url", `https://${host}:${port}/simple/`, "--retries", "1", "--timeout", "10"];
      return run(
        "python3",
        ["-m", "pip", "install", "--no-cache-dir", "--target", path.join(directory, "site"), ...index, "tiny"],
        env,
      );
    };
    expect(await pip("index.example")).toMatchObject({
      code: 0,
      output: expect.stringContaining("Successfully installed tiny-1.0"),
    });
    const refused = await pip("evil.example");
    expect(refused.code).toBe(1);
    expect(refused.output).toContain("evil.example is not in this executor's network policy");
  }, 120_000);

  test("npm installs only from a listed registry through the proxy", async () => {
    const directory = await temporary();
    await mkdir(path.join(directory, "package"));
    await writeFile(path.join(directory, "package/package.json"), '{"name":"tiny","version":"1.0.0"}');
    await promisify(execFile)("tar", ["czf", "tiny.tgz", "package"], { cwd: directory });
    const bytes = await readFile(path.join(directory, "tiny.tgz"));
    const { port, ca } = await playTlsHost("registry.example", (request, response) => {
      if (request.url?.endsWith(".tgz") === true) {
        response.end(bytes);
        return;
      }
      const dist = {
        tarball: `https://registry.example:${port}/tiny/-/tiny-1.0.0.tgz`,
        integrity: `sha512-${createHash("sha512").update(bytes).digest("base64")}`,
      };
      const versions = { "1.0.0": { name: "tiny", version: "1.0.0", dist } };
      response.end(JSON.stringify({ name: "tiny", "dist-tags": { latest: "1.0.0" }, versions }));
    });
    const project = path.join(directory, "project");
    await mkdir(project);
    await writeFile(path.join(project, "package.json"), "{}");
    await writeFile(path.join(directory, "ca.pem"), ca);
    const proxy = await startProxy({ allow: [`registry.example:${port}`, "127.0.0.1"] });
    const env = {
      HTTPS_PROXY: proxy.url,
      HOME: directory,
      npm_config_cafile: path.join(directory, "ca.pem"),
      npm_config_cache: path.join(directory, "cache"),
      npm_config_userconfig: path.join(directory, "user.npmrc"),
      npm_config_globalconfig: path.join(directory, "global.npmrc"),
      npm_config_fetch_retries: "0",
    };
    const npm = (host: string, name: string): ReturnType<typeof run> => {
      const flags = ["--registry", `https://${host}:${port}/`, "--no-audit", "--no-fund", "--prefix", project];
      return run("npm", ["install", ...flags, name], env);
    };
    const installed = await npm("registry.example", "tiny");
    expect(installed).toMatchObject({ code: 0, output: expect.stringContaining("added 1 package") });
    const refused = await npm("evil.example", "other");
    expect(refused.code).not.toBe(0);
    expect(proxy.decisions.at(-1)).toMatchObject({ allowed: false, host: "evil.example" });
  }, 120_000);
});
