// Lets code reach the hosts that you list through a company's HTTP proxy, whose password it never sees.
// needs: python3, bubblewrap
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
// #region policy
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion

// Plays the company's proxy, which forbids everything.
const asked: string[] = [];
const company = createServer();
company.on("connect", (request, stream) => {
  const [, basic = ""] = request.headers["proxy-authorization"]?.split(" ") ?? [];
  asked.push(`${request.url} ${Buffer.from(basic, "base64").toString()}`);
  stream.end("HTTP/1.1 403 Forbidden\r\n\r\n");
});
await once(company.listen(0, "127.0.0.1"), "listening");
const address = company.address();
// "http://proxy.corp.example:3128" where there is one.
const companyProxy = typeof address === "object" ? `http://127.0.0.1:${address?.port}` : "";
const readPassword = (): Promise<string> => Promise.resolve("s3cr3t");

// #region policy
await using executor = new LocalCommandLineCodeExecutor({
  isolation: "os-sandbox",
  network: {
    allow: ["api.example.com:443", "*.corp.example:443"],
    upstreamProxy: {
      url: companyProxy,
      username: "builder",
      password: () => readPassword(),
      noProxy: ["*.corp.example"],
    },
  },
});
// #endregion

const code = `import urllib.error, urllib.request
try:
    urllib.request.urlopen("https://api.example.com/")
except urllib.error.URLError as error:
    print(error)`;
const { output } = await executor.executeCodeBlocks([{ language: "python", code }]);
assert.match(output, /the upstream proxy did not connect to api\.example\.com:443: it answered with status 403/);
assert.deepEqual(asked, ["api.example.com:443 builder:s3cr3t"]);
company.close();
