import { describe, expect, it } from "vitest";
import {
  chooseRuntime,
  type ContainerRuntimes,
  readRuntime,
  runtimeFilters,
  runtimeKernel,
} from "../src/container-runtime.ts";

/** Runtimes by name, each with its program. */
function registered(programs: Readonly<Record<string, string>>, byDefault = "runc"): ContainerRuntimes {
  const all = { runc: "runc", ...programs };
  const listed = Object.entries(all).map(([name, program]) => readRuntime(name, program, []));
  return { listed, byDefault, areRegistered: true };
}

describe("the strongest runtime", () => {
  const gvisor = { gvisor: "/usr/local/bin/runsc" };

  it.each([
    ["a kernel of its own", { ...gvisor, kata: "/opt/kata/bin/containerd-shim-kata-v2" }, "kata"],
    ["a kernel of its own, in containerd's words", { ...gvisor, vm: "io.containerd.kata-qemu.v2" }, "vm"],
    ["a kernel of its own, by libkrun", { ...gvisor, light: "/usr/bin/krun" }, "light"],
    ["gVisor", gvisor, "gvisor"],
    ["gVisor, in containerd's words", { sandbox: "io.containerd.runsc.v1" }, "sandbox"],
  ])("has %s", (_, programs, name) => {
    expect(chooseRuntime(registered(programs), "auto")).toBe(name);
  });

  it("is the default if that is as strong as any", () => {
    expect(chooseRuntime(registered({}), "auto")).toBeUndefined();
    expect(chooseRuntime(registered({ runsc: "/usr/bin/runsc", a: "/opt/runsc" }, "runsc"), "auto")).toBeUndefined();
  });

  it("is judged by its program, not by its name", () => {
    expect(chooseRuntime(registered({ kata: "/usr/bin/runc", runsc: "/usr/bin/wrapper" }), "auto")).toBeUndefined();
  });

  it("is the default with a daemon that also lists what it does not have", () => {
    const podman = { ...registered({ kata: "/usr/bin/kata-runtime" }), areRegistered: false };
    expect(chooseRuntime(podman, "auto")).toBeUndefined();
    expect(chooseRuntime(podman, "kata")).toBe("kata");
    expect(runtimeKernel(podman, "kata")).toBe("own");
  });
});

describe("a runtime's kernel", () => {
  const runtimes = registered({ runsc: "/usr/bin/runsc", other: "/usr/bin/other", sysbox: "/usr/bin/crun" });

  it.each([
    ["runsc", "user-space"],
    ["sysbox", "shared"],
    ["other", undefined],
    ["missing", undefined],
    [undefined, "shared"],
  ])("of %s is %s", (name, kernel) => {
    expect(runtimeKernel(runtimes, name)).toBe(kernel);
  });

  it("is not known of a daemon that does not say what its default is", () => {
    expect(runtimeKernel({ ...runtimes, byDefault: undefined }, undefined)).toBeUndefined();
  });
});

describe("filters of system calls", () => {
  const listed = [
    readRuntime("runc", "runc", []),
    readRuntime("filters", "/usr/bin/runsc", ["--platform=ptrace", "--oci-seccomp"]),
    readRuntime("ignores", "/usr/bin/runsc", ["--oci-seccomp=false"]),
    readRuntime("kata", "kata-runtime", []),
  ];

  it.each([
    [undefined, true],
    ["runc", true],
    ["filters", true],
    ["ignores", false],
    ["kata", false],
  ])("apply in the runtime %s: %s", (name, expected) => {
    expect(runtimeFilters({ listed, byDefault: "runc", areRegistered: true }, name)).toBe(expected);
  });
});
