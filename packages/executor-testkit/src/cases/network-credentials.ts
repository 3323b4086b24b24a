import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { type AllowedNetwork, type CodeBlock, ComponentError } from "@fenced/core";
import type { ConformanceCase, Need } from "../conformance-case.ts";
import { language } from "../needs.ts";
import { followStream } from "../observe/follow-stream.ts";
import { PlayedHost } from "../observe/play-host.ts";

/** The executor supports network policies. */
export const policies: Need = ({ subject }) =>
  subject.takesNetworkPolicy === true ? undefined : "the executor takes no network policy (`takesNetworkPolicy`)";

export const inPython: readonly Need[] = [policies, language("python")];

/** Resolves every name to this host's loopback interface, where servers play hosts; only `good.example` is listed. */
export function policy(more: Partial<AllowedNetwork> = {}): AllowedNetwork {
  return { allow: ["good.example", "127.0.0.1"], resolve: async () => ["127.0.0.1"], ...more };
}

export const python = (code: string): CodeBlock => ({ language: "python", code });

/** Prints a host's answer, or the reason why there is none. */
export const fetching = (url: string): string => `import urllib.request, urllib.error
try:
    print(urllib.request.urlopen(${JSON.stringify(url)}, timeout=60).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print(error)
`;

const openssl: Need = () =>
  spawnSync("openssl", ["version"]).status === 0 ? undefined : "openssl, which makes certificates, is not on the PATH";

const secret = "Bearer s3cr3t-of-the-host";

/** Secrets that only the proxy knows. */
export const networkCredentials: readonly ConformanceCase[] = [
  {
    name: "adds credentials that the program cannot see and its output never contains",
    needs: [...inPython, openssl],
    async run(kit) {
      const got: (string | undefined)[] = [];
      const { host: tls, ca } = await PlayedHost.https("good.example", (request, response) => {
        got.push(request.headers.authorization);
        response.end(`hello ${request.url ?? ""}`);
      });
      await using host = tls;
      const header = { host: `good.example:${host.port}`, header: "authorization" };
      const network = policy({ credentials: [{ ...header, value: () => secret, ca }] });
      const executor = await kit.create({ network });
      const code = `${fetching(`https://good.example:${host.port}/plain`)}
request = urllib.request.Request("https://good.example:${host.port}/own", headers={"Authorization": "Bearer mine"})
answer = urllib.request.urlopen(request, timeout=60)
print(answer.read(), answer.headers)
import os, subprocess
print(dict(os.environ), subprocess.run(["sh", "-c", "set"], stdout=subprocess.PIPE).stdout)
print(open(os.environ["SSL_CERT_FILE"]).read().count("BEGIN CERTIFICATE") > 10)
`;
      const result = await kit.succeed(executor, python(code));
      assert.deepEqual(got, [secret, secret], "the header is the proxy's, whatever the program sends");
      assert.match(result.output, /^hello \/plain\nb'hello \/own'/);
      assert.match(result.output, /\nTrue\n$/, "the public authorities are trusted as well");
      assert.ok(!JSON.stringify(result).includes("s3cr3t"), "the secret is in the result");
      const { events, result: last } = followStream(
        executor.streamCodeBlocks([python(fetching("https://evil.example/"))]),
      );
      await kit.within("a stream", last);
      assert.ok(!JSON.stringify(events).includes("s3cr3t"), "the secret is in the events");
      await kit.rejects(ComponentError, "dumpComponent", (async () => executor.dumpComponent())(), /network/);
    },
  },
  {
    name: "replaces placeholders by secrets on the way to their host, and secrets by placeholders on the way back",
    needs: [...inPython, openssl],
    async run(kit) {
      const got: string[] = [];
      const { host: tls, ca } = await PlayedHost.https("good.example", (request, response) => {
        let body = "";
        request.on("data", (chunk: Buffer) => (body += chunk.toString()));
        request.on("end", () => {
          got.push(request.headers.authorization ?? "", request.url ?? "", body);
          response.writeHead(401, { "content-type": "application/json" });
          response.end(JSON.stringify({ error: "wrong key", headers: request.headers, url: request.url, body }));
        });
      });
      await using host = tls;
      const [place, placeholder, key] = [`good.example:${host.port}`, "env:SERVICE_KEY", "sk_s3cr3t_1234"];
      const network = policy({ credentials: [{ host: place, placeholder, value: () => key, ca }] });
      const executor = await kit.create({ network });
      const code = `import json, os, urllib.error, urllib.parse, urllib.request
key = os.environ["SERVICE_KEY"] = "${placeholder}"
url = "https://${place}/?" + urllib.parse.urlencode({"key": key})
headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
try:
    urllib.request.urlopen(urllib.request.Request(url, json.dumps({"key": key}).encode(), headers), timeout=60)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode().count(key), dict(os.environ))
`;
      const result = await kit.succeed(executor, python(code));
      assert.deepEqual(got, [`Bearer ${key}`, `/?key=${key}`, `{"key": "${key}"}`]);
      assert.match(result.output, /^401 3 /);
      assert.ok(!JSON.stringify(result).includes("s3cr3t"), "the secret is in the result");
    },
  },
  {
    name: "lets through only the requests that a rule allows, and says which it refused",
    needs: [...inPython, openssl],
    async run(kit) {
      const got: string[] = [];
      const { host: tls, ca } = await PlayedHost.https("good.example", (request, response) => {
        got.push(`${request.method} ${request.url}`);
        response.end("hello");
      });
      await using host = tls;
      const rule = { host: "good.example", methods: ["GET"], paths: ["/public/**"], ca };
      const executor = await kit.create({ network: policy({ allow: [rule, "127.0.0.1"] }) });
      const base = `https://good.example:${host.port}`;
      const code = ["/public/a", "/secret", "/public/%2e%2e/secret"].map((path) => fetching(base + path)).join("\n");
      const posts = `import urllib.request
try:
    urllib.request.urlopen("${base}/public/a", data=b"x", timeout=60)
except OSError as error:
    print(error)
`;
      const result = await kit.succeed(executor, python(code + posts));
      assert.deepEqual(got, ["GET /public/a"]);
      assert.match(
        result.output,
        /^hello\n403 GET \/secret of good\.example is not in this executor's network policy\n/,
      );
      const reasons = (result.network ?? []).map(({ method, reason }) => `${method}: ${reason}`);
      assert.equal(reasons.length, 3, reasons.join("\n"));
      assert.match(reasons.at(-1) ?? "", /^POST: POST \/public\/a of good\.example/);
    },
  },
  {
    name: "sends credentials only to a verified host, and reveals no secret when that fails",
    needs: [...inPython, openssl],
    async run(kit) {
      let asked = 0;
      const { host: tls } = await PlayedHost.https(
        "good.example",
        (_, response) => void response.end(String((asked += 1))),
      );
      await using host = tls;
      const header = { host: `good.example:${host.port}`, header: "authorization" };
      const broken = { ...header, host: `also.example:${host.port}`, value: () => Promise.reject(new Error("s3cr3t")) };
      const names = ["good.example", "127.0.0.1", broken.host];
      const network = policy({ allow: names, credentials: [{ ...header, value: () => secret }, broken] });
      const executor = await kit.create({ network });
      for (const { host: name } of [header, broken]) {
        const result = await kit.succeed(executor, python(fetching(`https://${name}/`)));
        assert.match(result.output, /^502 /, "the program is told that the proxy could not do it");
        assert.ok(!JSON.stringify(result).includes("s3cr3t"), `the secret is in the result: ${result.output}`);
      }
      assert.equal(asked, 0);
    },
  },
];
