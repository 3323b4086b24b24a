import { harmlessSystemCalls } from "./system-calls.ts";

/** What an argument of a system call must be for a rule to apply. */
type Condition = { readonly index: number } & (
  | { readonly op: "SCMP_CMP_EQ" | "SCMP_CMP_NE"; readonly value: number }
  /** The bits in `value` must be those of `valueTwo`. */
  | { readonly op: "SCMP_CMP_MASKED_EQ"; readonly value: number; readonly valueTwo: 0 }
);

interface Rule {
  readonly names: readonly string[];
  readonly action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  readonly errnoRet?: number;
  readonly args?: readonly Condition[];
}

const errors = { EPERM: 1, ENOSYS: 38 } as const;
const setIdBits = 0o6000;
/** `O_CREAT` and `O_TMPFILE`: a mode matters only with one of them. */
const creating = 0o20000100;
const newNamespaces = 0x7e02_0000;
/** Sockets to the hypervisor, which no namespace confines (`AF_VSOCK`). */
const hypervisorSockets = 40;
/** Linux, its old 16-bit identifiers, without randomized addresses, and both; the last one only asks. */
const personalities = [0x0, 0x8, 0x20000, 0x20008, 0xffffffff];

function allow(names: readonly string[], ...args: readonly Condition[]): Rule {
  return { names, action: "SCMP_ACT_ALLOW", ...(args.length > 0 && { args }) };
}

function without(bits: number, index: number): Condition {
  return { index, op: "SCMP_CMP_MASKED_EQ", value: bits, valueTwo: 0 };
}

/** These keep their arguments in memory, so that a filter does not see them; C libraries fall back to calls that it sees. */
function hide(...names: readonly string[]): Rule {
  return { names, action: "SCMP_ACT_ERRNO", errnoRet: errors.ENOSYS };
}

const rules: readonly Rule[] = [
  allow(harmlessSystemCalls),
  allow(["clone"], without(newNamespaces, 0)),
  allow(["socket"], { index: 0, op: "SCMP_CMP_NE", value: hypervisorSockets }),
  ...personalities.map((value) => allow(["personality"], { index: 0, op: "SCMP_CMP_EQ", value })),
  // A setuid program in a directory of the host would give the host's other users its owner's rights.
  allow(["chmod", "fchmod", "creat", "mknod"], without(setIdBits, 1)),
  allow(["fchmodat", "fchmodat2", "mknodat"], without(setIdBits, 2)),
  allow(["open"], without(creating, 1)),
  allow(["open"], without(setIdBits, 2)),
  allow(["openat"], without(creating, 2)),
  allow(["openat"], without(setIdBits, 3)),
];

function profile(own: readonly Rule[]): string {
  return JSON.stringify({
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: errors.EPERM,
    archMap: [
      { architecture: "SCMP_ARCH_X86_64", subArchitectures: ["SCMP_ARCH_X86", "SCMP_ARCH_X32"] },
      { architecture: "SCMP_ARCH_AARCH64", subArchitectures: ["SCMP_ARCH_ARM"] },
    ],
    syscalls: [...rules, ...own],
  });
}

/**
 * The system call filter of a hardened container that shares a directory with the host, in the format of Docker and
 * Podman. It is as strict as theirs, which it replaces, and also refuses the setuid and setgid bits on files, because
 * on a shared directory these outlive the container. Only for x64 and arm64.
 */
export const seccompProfile: string = profile([hide("clone3", "openat2")]);

/**
 * The same for gVisor, whose older versions refuse a system call always with `EPERM`: C libraries then do not fall back
 * from `clone3`, so that no thread starts. The namespaces that it makes there are those of gVisor's kernel, not of the
 * machine's.
 */
export const userSpaceSeccompProfile: string = profile([allow(["clone3"]), hide("openat2")]);
