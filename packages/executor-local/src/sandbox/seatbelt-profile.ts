/** What a sandbox of macOS lets programs do. */
export interface SeatbeltRules {
  /** Files and directories that programs may change. Absolute paths without symbolic links. */
  readonly writable: readonly string[];
  /** Files and directories that programs may read besides those of the system. Absolute paths without symbolic links. */
  readonly readable: readonly string[];
  readonly network: "none" | "open";
}

/** Where macOS keeps programs, libraries and settings that hold no secrets. */
const systemPaths = [
  ["/bin", "/sbin", "/usr", "/System", "/Library/Frameworks", "/Library/Developer", "/Library/Fonts"],
  ["/Library/Apple", "/Applications/Xcode.app", "/opt/homebrew", "/private/var/db/timezone", "/private/var/select"],
  ["/private/var/db/dyld", "/private/etc/ssl", "/private/etc/localtime", "/private/etc/hosts", "/private/etc/services"],
].flat();

const devices = [
  "/dev/null",
  "/dev/zero",
  "/dev/random",
  "/dev/urandom",
  "/dev/fd",
  "/dev/stdin",
  "/dev/stdout",
  "/dev/stderr",
];

/**
 * A profile for `sandbox-exec`, in the profile language of macOS: everything is forbidden but what it lists. Programs may look
 * up names of files anywhere, which the linker of macOS needs; what is in them they may not read.
 */
export function seatbeltProfile({ writable, readable, network }: SeatbeltRules): string {
  const read = [...systemPaths, ...devices, ...readable, ...writable];
  const write = [...devices, ...writable];
  return [
    "(version 1)",
    "(deny default)",
    "(allow process-fork)",
    "(allow process-exec)",
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow file-read-metadata)",
    '(allow file-read* (literal "/"))',
    allowFiles("file-read*", read),
    allowFiles("file-write*", write),
    '(allow file-ioctl (literal "/dev/null") (literal "/dev/zero"))',
    '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.logger"))',
    ...(network === "open" ? openNetwork : loopbackOnly),
    "",
  ].join("\n");
}

/** The loopback is the machine's: there are no network namespaces. Names are then not looked up either. */
const loopbackOnly = ["(deny network*)"];
const openNetwork = [
  "(allow network*)",
  "(allow system-socket)",
  '(allow mach-lookup (global-name "com.apple.dnssd.service") (global-name "com.apple.trustd.agent"))',
];

function allowFiles(operation: string, places: readonly string[]): string {
  return `(allow ${operation}\n${places.map((each) => `  (subpath ${quoted(each)})`).join("\n")})`;
}

/** A string of the profile language, which is Scheme's. */
function quoted(text: string): string {
  return `"${text.replaceAll(/[\\"]/g, "\\$&")}"`;
}
