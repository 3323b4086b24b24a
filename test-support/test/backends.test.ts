import { describe, expect, it } from "vitest";
import { detectBackends, requiredBackends } from "../backends.ts";

describe("requiredBackends", () => {
  it("requires nothing unless told to", () => {
    expect(requiredBackends(undefined)).toEqual([]);
    expect(requiredBackends("")).toEqual([]);
  });

  it("accepts a list, with or without spaces", () => {
    expect(requiredBackends("python3, bash,")).toEqual(["python3", "bash"]);
  });

  it("accepts all of them at once", () => {
    expect(requiredBackends("all")).toEqual(expect.arrayContaining(["python3", "bash", "node", "pwsh"]));
  });

  it("throws for an unknown name", () => {
    expect(() => requiredBackends("python3,dokcer")).toThrow(/"dokcer", which is not a backend/);
  });
});

describe("detectBackends", () => {
  it("reports the version of an available backend", async () => {
    const { node } = await detectBackends();
    expect(node).toEqual({ available: true, version: process.versions.node });
  });

  it("reports why a backend is missing, and what to do", async () => {
    const path = process.env.PATH;
    process.env.PATH = "/nowhere";
    try {
      const { python3 } = await detectBackends();
      expect(python3).toMatchObject({
        available: false,
        reason: "python3 is not on the PATH",
        remedy: expect.stringContaining("install Python"),
      });
    } finally {
      process.env.PATH = path;
    }
  });
});
