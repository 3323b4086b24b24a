import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { needs } from "@fenced/test-support";
import { playTlsHost } from "@fenced/test-support/loopback-hosts";
import { describe, expect, it, onTestFinished } from "vitest";
import { packageIndexes } from "../src/index.ts";
import { createExecutor, printed, run } from "./support/create-executor.ts";
import { policy } from "./support/network-policy.ts";

describe("package indexes", { ...needs("docker", "openssl", "root"), timeout: 120_000 }, () => {
  it("are the only hosts that pip install needs", async () => {
    const wheel = await makeWheel();
    const address = "127.77.0.1";
    const { ca } = await playTlsHost(
      ["pypi.org", "files.pythonhosted.org"],
      ({ url = "", headers: { host = "" } }, response) => {
        const page = `<a href="https://files.pythonhosted.org/packages/${wheel.name}">${wheel.name}</a>`;
        if (host === "files.pythonhosted.org" && url === `/packages/${wheel.name}`) response.end(wheel.bytes);
        else if (host === "pypi.org") response.setHeader("content-type", "text/html").end(page);
        else response.writeHead(404).end();
      },
      { address, port: 443 },
    );
    const network = { allow: [...packageIndexes, address], resolve: async () => [address] };
    await using executor = createExecutor({ network, env: { PIP_DISABLE_PIP_VERSION_CHECK: "1" } });
    const pip = "pip install --no-cache-dir --retries 0 --cert ca.pem --target /tmp/site";
    const code = `cat > ca.pem <<'END'\n${ca}END\n${pip} --index-url https://pypi.org/simple tiny && PYTHONPATH=/tmp/site python3 -c 'import tiny; print(tiny.answer)'`;
    expect(await printed(executor, "sh", code)).toBe("42");
    const refused = await run(executor, "sh", `${pip} --index-url https://index.example/simple tiny`);
    // Without retries, pip does not show the reason.
    expect(refused.output).toContain("No matching distribution found for tiny");
    const reason = "index.example is not in this executor's network policy";
    expect(refused.network).toMatchObject([{ host: "index.example", port: 443, reason }]);
  });
});

describe("packages and credentials", { ...needs("docker", "openssl"), timeout: 120_000 }, () => {
  it("pip installs from an index that requires a credential, which the code never sees", async () => {
    const secret = "Bearer s3cr3t-value";
    const wheel = await makeWheel();
    const { port, ca } = await playTlsHost("index.example", (request, response) => {
      if (request.headers.authorization !== secret) response.writeHead(401).end();
      else if (request.url?.endsWith(".whl") === true) response.end(wheel.bytes);
      else response.setHeader("content-type", "text/html").end(`<a href="/files/${wheel.name}">${wheel.name}</a>`);
    });
    const credentials = [
      { host: `index.example:${port}`, header: "authorization", value: () => Promise.resolve(secret), ca },
    ];
    const network = policy({ allow: [`index.example:${port}`], credentials });
    await using executor = createExecutor({ network, env: { PIP_DISABLE_PIP_VERSION_CHECK: "1" } });
    const index = `https://index.example:${port}/simple/`;
    const pip = `pip install --no-cache-dir --retries 0 --index-url ${index} --target /tmp/site tiny`;
    const installed = await run(executor, "sh", `${pip} && env`);
    expect(installed).toMatchObject({ exitCode: 0, output: expect.stringContaining("HTTPS_PROXY=http://127.0.0.1:") });
    expect(installed.output).not.toContain("s3cr3t");
    const requests = `
import sys
sys.path.insert(0, "/tmp/site")
import tiny
from pip._vendor import requests
print(tiny.answer, requests.get("https://index.example:${port}/simple/").status_code)
`;
    expect(await printed(executor, "python", requests)).toBe("42 200");
    const refused = await run(executor, "python", requests.replaceAll("index.example", "evil.example"));
    expect(refused.output).toContain("evil.example is not in this executor's network policy");
    // However often the requests library retries.
    expect(refused.network).toEqual([expect.objectContaining({ host: "evil.example", port, allowed: false })]);
    expect(() => executor.dumpComponent()).toThrow(/network\.credentials/);
  });
});

async function makeWheel(): Promise<{ readonly name: string; readonly bytes: Buffer }> {
  const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const name = "tiny-1.0-py3-none-any.whl";
  const make = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as z:
    z.writestr("tiny.py", "answer = 42\\n")
    z.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n")
    z.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr("tiny-1.0.dist-info/RECORD", "")
`;
  await promisify(execFile)("python3", ["-c", make, join(directory, name)]);
  return { name, bytes: await readFile(join(directory, name)) };
}
