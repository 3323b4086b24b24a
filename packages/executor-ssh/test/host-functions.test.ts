import { hostFunction } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { SshServer } from "@fenced/test-support/ssh-server";
import { describe, expect, it } from "vitest";
import { create, gone } from "./support/server.ts";

const add = hostFunction({
  name: "add",
  description: "Adds.",
  input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  execute: ({ a, b }) => Number(a) + Number(b),
});

const callAndTell = `from functions import add, HostFunctionError
try:
    print(add(20, 22))
except HostFunctionError as error:
    print(error.name)
`;
/** Finds the program that carries calls. */
const findCarrier = `import os, signal
def carriers():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as file:
                marks = [each for each in file.read().split(b"\\0") if each.startswith(b"FENCED_SSH_CALL=")]
            own = os.environ["FENCED_SSH_CALL"].split(".")[0].encode()
            if marks and marks[0].startswith(b"FENCED_SSH_CALL=" + own + b".calls."):
                yield int(pid)
        except OSError:
            pass
`;

describe("host functions over ssh", needs("ssh", "python3", "bash"), () => {
  it.each([
    ["kills", "os.kill(pid, signal.SIGKILL)"],
    ["writes in place of", 'open("/proc/%d/fd/1" % pid, "wb", 0).write(b"\\xff" * 1000)'],
  ])("code that %s their carrier ends its connections, and the next call gets another carrier", async (_, attack) => {
    const executor = create({ functions: [add] });
    const code = `${callAndTell}${findCarrier}
for pid in carriers():
    ${attack}
    print("attacked")
`;
    const result = await executor.executeCodeBlocks([{ language: "python", code }]);
    expect(result).toMatchObject({ exitCode: 0, output: "42\nattacked\n" });
    await expect
      .poll(async () => (await executor.executeCodeBlocks([{ language: "python", code: callAndTell }])).output)
      .toBe("42\n");
    await executor.stop();
    await gone();
  });

  it("work on a server that forbids all forwarding", async () => {
    await using hardened = await SshServer.start("DisableForwarding yes");
    const executor = create({ functions: [add], configFile: hardened.configFile });
    const block = { language: "python", code: callAndTell };
    expect((await executor.executeCodeBlocks([block])).output).toBe("42\n");
    await executor.stop();
  });

  it("code that stops their carrier runs into its time limit, and restart() starts another carrier", async () => {
    const executor = create({ functions: [add] });
    const code = `${callAndTell}${findCarrier}
for pid in carriers():
    os.kill(pid, signal.SIGSTOP)
add(1, 2)
`;
    const result = await executor.executeCodeBlocks([{ language: "python", code }], { timeoutMs: 5000 });
    expect(result).toMatchObject({ timedOut: true, stdout: "42\n" });
    await executor.restart();
    const next = await executor.executeCodeBlocks([{ language: "python", code: callAndTell }]);
    expect(next.output).toBe("42\n");
    await executor.stop();
    await gone();
  });
});
