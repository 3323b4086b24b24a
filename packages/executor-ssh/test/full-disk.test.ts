import { needs } from "@fenced/test-support";
import { testFullDisk } from "@fenced/test-support/full-disk";
import { describe } from "vitest";
import { create } from "./support/server.ts";

describe.each([
  ["with cold blocks", {}],
  ["with waiting interpreters", { warm: {} }],
])("a full disk on the other host, %s", needs("ssh", "root", "python3", "bash", "node"), (_, options) => {
  testFullDisk((more) => create({ ...options, ...more }));
});
