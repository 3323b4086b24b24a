// Asks about each new host that the code wants to connect to, while the connection waits.
// needs: python3, bubblewrap
import assert from "node:assert/strict";
// #region ask
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
// #endregion

const asked: string[] = [];

/** Plays a person. */
async function ask(question: string): Promise<string> {
  asked.push(question);
  return "no";
}

// #region ask
await using executor = new LocalCommandLineCodeExecutor({
  isolation: "os-sandbox",
  network: {
    allow: ["pypi.org:443"],
    onUnknownHost: async ({ host, port }) => (await ask(`May the code connect to ${host}:${port}?`)) === "yes",
  },
});
// #endregion

const code = `import urllib.error, urllib.request
try:
    urllib.request.urlopen("https://api.example.com/")
except urllib.error.URLError as error:
    print(error)`;
const { output } = await executor.executeCodeBlocks([{ language: "python", code }]);
assert.match(output, /port 443 of api\.example\.com .* was asked about, and is not allowed/);
assert.deepEqual(asked, ["May the code connect to api.example.com:443?"]);
