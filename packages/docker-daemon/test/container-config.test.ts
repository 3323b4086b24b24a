import { InvalidInputError } from "@fenced/core";
import { checkOptions, optionsSchema } from "@fenced/core/options";
import { describe, expect, it } from "vitest";
import { containerLimits, limitsConfig, memoryLimit, readConnection } from "../src/index.ts";

describe("limits", () => {
  it("are set by default, and left to the daemon if not hardened", () => {
    expect(limitsConfig({})).toMatchObject({
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      Memory: 1_073_741_824,
      MemorySwap: 1_073_741_824,
      PidsLimit: 512,
    });
    expect(limitsConfig({ hardened: false })).toEqual({ Init: true });
    expect(memoryLimit({ hardened: false, memoryBytes: 8_000_000 })).toBe(8_000_000);
  });

  it("leave half of the memory to programs if /tmp is in memory", () => {
    const { Tmpfs: tmpfs } = limitsConfig({ readOnlyRootFilesystem: true, memoryBytes: 100_000_000 });
    expect(tmpfs).toEqual({ "/tmp": "rw,exec,nosuid,nodev,mode=1777,size=50000000" });
  });

  it.each([{ memoryBytes: 1 }, { cpus: 0 }, { pidsLimit: 2 }])("are rejected if they are invalid: %j", (limits) => {
    expect(() => checkOptions(optionsSchema(containerLimits), limits, "test")).toThrow(InvalidInputError);
  });
});

describe("a connection", () => {
  it.each([
    ["unix:///run/docker.sock", { kind: "socket", path: "/run/docker.sock" }],
    ["tcp://[::1]", { kind: "tcp", host: "::1", port: 2375 }],
    ["https://build:9999", { kind: "tls", host: "build", port: 9999, verify: true }],
  ])("to %s is parsed", (address, transport) => {
    expect(readConnection(address)).toEqual(transport);
  });

  it.each(["ftp://host", "tcp://", "ssh://user:secret@host"])("to %s is rejected", (address) => {
    expect(() => readConnection(address)).toThrow(InvalidInputError);
  });
});
