import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
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
  // `npm test` leaves out almost all of them.
  beforeEach(() => void vi.stubEnv("FENCED_WITHOUT", ""));
  afterEach(() => void vi.unstubAllEnvs());

  it("reports the version of an available backend", async () => {
    const { node } = await detectBackends();
    expect(node).toEqual({ available: true, version: process.versions.node });
  });

  it("leaves out what FENCED_WITHOUT names", async () => {
    const reason = "FENCED_WITHOUT leaves it out";
    vi.stubEnv("FENCED_WITHOUT", "node");
    expect(await detectBackends()).toMatchObject({ node: { available: false, reason } });
    vi.stubEnv("FENCED_WITHOUT", "all,!node");
    expect(await detectBackends()).toMatchObject({ node: { available: true }, docker: { available: false, reason } });
  });

  it("keeps what it found in a file, and looks for nothing if the file exists", async () => {
    const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
    const file = join(directory, "backends.json");
    try {
      const found = await detectBackends(file);
      expect(JSON.parse(await readFile(file, "utf8"))).toEqual(found);
      const kept = { ...found, node: { available: true, version: "of another run" } };
      await writeFile(file, JSON.stringify(kept));
      expect(await detectBackends(file)).toEqual(kept);
    } finally {
      await rm(directory, { recursive: true });
    }
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
