// Runs blocks on another host; here, on this machine, through the example's own SSH server.
// needs: ssh, python3
import assert from "node:assert/strict";
// #region ssh
import { SshCommandLineCodeExecutor } from "@fenced/executor-ssh";
// #endregion
import { host, SshServer } from "@fenced/test-support/ssh-server";

await using server = await SshServer.start();
Object.assign(process.env, { BUILD_HOST: host, SSH_CONFIG: server.configFile });

// #region ssh
await using executor = new SshCommandLineCodeExecutor({
  host: process.env.BUILD_HOST ?? "build.example.com", // or an alias of ~/.ssh/config
  configFile: process.env.SSH_CONFIG ?? "/home/me/.ssh/config", // optional
  env: { DATA_TOKEN: "secret" }, // never in a command line
});
await executor.files.write("numbers.txt", "1 2 3");
const result = await executor.executeCodeBlocks([
  { language: "python", code: "print(sum(map(int, open('numbers.txt').read().split())))" },
  { language: "sh", code: 'test "$DATA_TOKEN" = secret && uname -s' },
]);
console.log(result.exitCode, result.output); // 0 "6\nLinux\n"
// #endregion

assert.equal(result.exitCode, 0, result.output);
assert.equal(result.output, "6\nLinux\n");
