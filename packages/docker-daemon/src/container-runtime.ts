import path from "node:path";
import type { ExecutorCapabilities } from "@fenced/core";

/** Which kernel answers the system calls of code, as in `ExecutorCapabilities`; `undefined` if not known. */
export type RuntimeKernel = ExecutorCapabilities["kernel"];

/** An OCI runtime that a daemon lists. */
export interface ContainerRuntime {
  readonly name: string;
  readonly kernel: RuntimeKernel;
  /** It applies the filter of system calls that a container is created with; `false` if it does not, or that is not known. */
  readonly filters: boolean;
}

/** The OCI runtimes of a daemon. */
export interface ContainerRuntimes {
  /** Those that it lists, registered or known by default. */
  readonly listed: readonly ContainerRuntime[];
  /** The name of the one that it uses unless told otherwise; `undefined` if it does not say. */
  readonly byDefault: string | undefined;
  /** Everything that it lists was registered by its administrator. Podman lists all that it knows, installed or not. */
  readonly areRegistered: boolean;
}

/** The value of the option `runtime` that asks for the strongest one. */
const strongest = "auto";

/**
 * Programs of runtimes by the kernel that they give: a runtime's name is whatever an administrator chose, so only its
 * program counts. `runc` may be named `kata`.
 */
const programs: readonly (readonly [RegExp, NonNullable<RuntimeKernel>])[] = [
  [/^(?:kata-runtime|krun|(?:containerd-shim-|io\.containerd\.)kata(?:[-.][\w.-]*)?)$/, "own"],
  [/^(?:runsc|(?:containerd-shim-|io\.containerd\.)runsc[-.]v\d+)$/, "user-space"],
  [
    /^(?:runc|crun|youki|(?:containerd-shim-|io\.containerd\.)runc[-.]v\d+|io\.containerd\.runtime\.v1\.linux)$/,
    "shared",
  ],
];

/** The kernel that a runtime's program gives. @param program - its path, or its type as containerd knows it. */
function kernelOfProgram(program: string): RuntimeKernel {
  const name = path.posix.basename(program);
  return programs.find(([pattern]) => pattern.test(name))?.[1];
}

/**
 * The runtime to ask a daemon for.
 *
 * @param wanted - the option `runtime`: `"auto"` for the strongest one that is registered.
 * @returns its name; `undefined` for the daemon's default.
 */
export function chooseRuntime(
  { listed, byDefault, areRegistered }: ContainerRuntimes,
  wanted: string | undefined,
): string | undefined {
  if (wanted !== strongest) return wanted;
  if (!areRegistered) return undefined;
  for (const kernel of ["own", "user-space"] as const) {
    const able = listed.filter((each) => each.kernel === kernel);
    if (able.some(({ name }) => name === byDefault)) return undefined;
    const [first] = able.toSorted((one, other) => one.name.localeCompare(other.name));
    if (first) return first.name;
  }
  return undefined;
}

/**
 * An OCI runtime, from what a daemon says about it.
 *
 * @param args - what its program is started with: gVisor ignores filters of system calls without `--oci-seccomp`.
 */
export function readRuntime(name: string, program: string, args: readonly string[]): ContainerRuntime {
  const kernel = kernelOfProgram(program);
  const filters = kernel === "shared" || (kernel === "user-space" && args.some((each) => filterFlag.test(each)));
  return { name, kernel, filters };
}

const filterFlag = /^--?oci-seccomp(?:=true)?$/;

/** Whether a container's runtime applies filters of system calls. @param name - its name; `undefined` for the daemon's default. */
export function runtimeFilters({ listed, byDefault }: ContainerRuntimes, name: string | undefined): boolean {
  // A daemon that lists none says nothing about its default, which is then runc or crun.
  return listed.length === 0 || listed.find((each) => each.name === (name ?? byDefault))?.filters === true;
}

/** The kernel for code in a container. @param name - its runtime's; `undefined` for the daemon's default. */
export function runtimeKernel(
  { listed, byDefault }: ContainerRuntimes,
  name: string | undefined = byDefault,
): RuntimeKernel {
  return listed.find((each) => each.name === name)?.kernel;
}
