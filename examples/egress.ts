// Lets a program talk only to the hosts that you list, through a proxy in your own process.
// needs: python3
import assert from "node:assert/strict";
// #region proxy
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { EgressProxy, packageIndexes } from "@fenced/egress";
// #endregion

// #region proxy
const service = createServer((_, response) => response.end("hello from the service\n")).listen(0, "127.0.0.1");
await once(service, "listening");
const address = service.address();
const place = typeof address === "object" ? `127.0.0.1:${address?.port}` : "";

const refused: string[] = [];
const proxy = new EgressProxy({
  allow: [...packageIndexes, "*.example.com:443", place],
  onRequest: ({ allowed, reason = "" }) => void (allowed || refused.push(reason)),
});
const { url } = await proxy.listen();
const code = `
import urllib.error, urllib.request
print(urllib.request.urlopen("http://${place}/").read().decode())
try:
    urllib.request.urlopen("https://api.foo.com/")
except urllib.error.URLError as error:
    print(error) # Tunnel connection failed: 403 api.foo.com is not in this executor's network policy
`;
const env = { ...process.env, http_proxy: url, https_proxy: url, no_proxy: "" };
const program = spawn("python3", ["-c", code], { env, stdio: "inherit" });
await once(program, "close");
await proxy.close();
service.close();
console.log(refused); // [ "api.foo.com is not in this executor's network policy" ]
// #endregion
assert.equal(program.exitCode, 0);
assert.deepEqual(refused, ["api.foo.com is not in this executor's network policy"]);
