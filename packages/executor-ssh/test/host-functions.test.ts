import { hostFunction } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { SshServer } from "@fenced/test-support/ssh-server";
import { describe, expect, it } from "vitest";
import { create } from "./support/server.ts";

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
describe("host functions over ssh", needs("ssh", "python3", "bash"), () => {
  it("work on a server that forbids all forwarding", async () => {
    await using hardened = await SshServer.start("DisableForwarding yes");
    const executor = create({ functions: [add], configFile: hardened.configFile });
    const block = { language: "python", code: callAndTell };
    expect((await executor.executeCodeBlocks([block])).output).toBe("42\n");
    await executor.stop();
  });
});
