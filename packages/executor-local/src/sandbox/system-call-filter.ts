import { auditArchitectures, systemCalls, type SystemCallTable } from "./system-calls.ts";

/**
 * The condition on an argument of a system call for a rule to apply. The kernel looks only at the lower 32 bits of
 * these arguments.
 */
type Condition =
  | { readonly argument: number; readonly anyBitOf: number }
  | { readonly argument: number; readonly oneOf: readonly number[] }
  | { readonly argument: number; readonly noneOf: readonly number[] };

/** System calls that fail with an error if all conditions hold. */
interface Rule {
  readonly calls: readonly string[];
  readonly error: number;
  readonly conditions?: readonly Condition[];
}

const errors = { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97 } as const;
const families = { unix: 1, ipv4: 2, ipv6: 10, netlink: 16 } as const;
/** All namespaces, as flags of `clone`; `unshare` has one more, for time. */
const [newNamespaces, newTimeNamespace] = [0x7e02_0000, 0x80];
const setIdBits = 0o6000;
/** `O_CREAT` and `O_TMPFILE`: a mode matters only with one of them. */
const creating = 0o20000100;
/** `TIOCSTI` and `TIOCLINUX` type into a terminal; `TIOCSETD` loads drivers. */
const terminalTricks = [0x5412, 0x541c, 0x5423];
/** `F_SETLEASE` */
const setLease = 1024;

function setsIds(call: string, mode: number): Rule {
  return { calls: [call], error: errors.EPERM, conditions: [{ argument: mode, anyBitOf: setIdBits }] };
}

function createsWithIds(call: string, flags: number): Rule {
  const conditions = [
    { argument: flags, anyBitOf: creating },
    { argument: flags + 1, anyBitOf: setIdBits },
  ];
  return { calls: [call], error: errors.EPERM, conditions };
}

const rules: readonly Rule[] = [
  // Kernel administration, which no program in a sandbox needs.
  {
    calls: [
      ["mount", "umount2", "pivot_root", "move_mount", "open_tree", "mount_setattr"],
      ["fsopen", "fsconfig", "fsmount", "fspick", "setns", "open_by_handle_at", "fanotify_init"],
      ["init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "acct"],
      ["swapon", "swapoff", "quotactl", "quotactl_fd", "iopl", "ioperm", "adjtimex", "clock_settime"],
      ["syslog", "lookup_dcookie", "bpf", "perf_event_open", "userfaultfd"],
    ].flat(),
    error: errors.EPERM,
  },
  // Keys belong to the user, and session keyrings are inherited, so no namespace isolates them.
  { calls: ["add_key", "request_key", "keyctl"], error: errors.EPERM },
  // New namespaces give back capabilities, and with them access to the part of the kernel with the most known escapes.
  {
    calls: ["unshare"],
    error: errors.EPERM,
    conditions: [{ argument: 0, anyBitOf: newNamespaces | newTimeNamespace }],
  },
  { calls: ["clone"], error: errors.EPERM, conditions: [{ argument: 0, anyBitOf: newNamespaces }] },
  // These keep their arguments in memory, or bypass this filter; C libraries fall back to calls that the filter sees.
  { calls: ["clone3", "openat2", "io_uring_setup", "io_uring_enter", "io_uring_register"], error: errors.ENOSYS },
  { calls: ["ioctl"], error: errors.EPERM, conditions: [{ argument: 1, oneOf: terminalTricks }] },
  // Asynchronous I/O, which hardly any program uses: all users of the machine share one small number of requests.
  { calls: ["io_setup"], error: errors.ENOSYS },
  // A lease lets the owner of a file delay everybody who opens it, the host's programs included.
  { calls: ["fcntl"], error: errors.EPERM, conditions: [{ argument: 1, oneOf: [setLease] }] },
  // Allow only socket families that network namespaces confine; not the hypervisor's sockets, for example.
  {
    calls: ["socket"],
    error: errors.EAFNOSUPPORT,
    conditions: [{ argument: 0, noneOf: Object.values(families) }],
  },
  {
    calls: ["socket"],
    error: errors.EAFNOSUPPORT,
    conditions: [
      { argument: 0, oneOf: [families.netlink] },
      { argument: 2, noneOf: [0] },
    ],
  },
  {
    calls: ["socketpair"],
    error: errors.EAFNOSUPPORT,
    conditions: [{ argument: 0, noneOf: [families.unix] }],
  },
  // A setuid program in the workspace would give other users of the host its owner's rights.
  setsIds("chmod", 1),
  setsIds("fchmod", 1),
  setsIds("fchmodat", 2),
  setsIds("fchmodat2", 2),
  setsIds("creat", 1),
  setsIds("mknod", 1),
  setsIds("mknodat", 2),
  createsWithIds("open", 1),
  createsWithIds("openat", 2),
];

/** An instruction of the kernel's packet filter: operation, jump if true, jump if false, operand. */
type Instruction = readonly [operation: number, jumpTrue: number, jumpFalse: number, operand: number];

const operations = { load: 0x20, jumpIfEqual: 0x15, jumpIfAtLeast: 0x35, jumpIfAnyBit: 0x45, answer: 0x06 } as const;
const answers = { allow: 0x7fff_0000, error: 0x0005_0000 } as const;
/** Offsets of what the kernel passes to the filter: the call's number, the architecture, the arguments. */
const [numberAt, architectureAt, argumentsAt] = [0, 4, 16];
/** The bit that marks system calls of x32 programs on x64. */
const x32 = 0x4000_0000;

/**
 * A kernel filter program that allows all system calls except those that could bypass the sandbox, which fail with an
 * error. Programs for other architectures, including 32-bit ones, cannot make any system calls.
 *
 * @param table - the architecture of this machine.
 */
export function systemCallFilter(table: SystemCallTable): Buffer {
  const other: Instruction = [operations.answer, 0, 0, answers.error | errors.ENOSYS];
  return encode([
    [operations.load, 0, 0, architectureAt],
    [operations.jumpIfEqual, 1, 0, auditArchitectures[table]],
    other,
    [operations.load, 0, 0, numberAt],
    [operations.jumpIfAtLeast, 0, 1, x32],
    other,
    ...rules.flatMap((rule) => rule.calls.flatMap((call) => refusal(rule, numberOf(call, table)))),
    [operations.answer, 0, 0, answers.allow],
  ]);
}

function numberOf(call: string, table: SystemCallTable): number | undefined {
  const [x64, arm64] = systemCalls[call] ?? [];
  return table === "x64" ? x64 : arm64;
}

function refusal({ error, conditions = [] }: Rule, call: number | undefined): Instruction[] {
  if (call === undefined) return [];
  let body: Instruction[] = [[operations.answer, 0, 0, answers.error | error]];
  for (const condition of conditions.toReversed()) body = [...check(condition, body.length), ...body];
  return [[operations.load, 0, 0, numberAt], [operations.jumpIfEqual, 0, body.length, call], ...body];
}

/** Continues with the next instruction if the condition holds, otherwise after the rest of the rule. */
function check(condition: Condition, rest: number): Instruction[] {
  const load: Instruction = [operations.load, 0, 0, argumentsAt + 8 * condition.argument];
  if ("anyBitOf" in condition) return [load, [operations.jumpIfAnyBit, 0, rest, condition.anyBitOf]];
  const values = "oneOf" in condition ? condition.oneOf : condition.noneOf;
  const compared = values.map((value, index): Instruction => {
    const left = values.length - 1 - index;
    if ("noneOf" in condition) return [operations.jumpIfEqual, left + rest, 0, value];
    return [operations.jumpIfEqual, left, left === 0 ? rest : 0, value];
  });
  return [load, ...compared];
}

function encode(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, [operation, jumpTrue, jumpFalse, operand]] of program.entries()) {
    bytes.writeUInt16LE(operation, index * 8);
    bytes.writeUInt8(jumpTrue, index * 8 + 2);
    bytes.writeUInt8(jumpFalse, index * 8 + 3);
    bytes.writeUInt32LE(operand, index * 8 + 4);
  }
  return bytes;
}
