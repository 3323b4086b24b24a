/** What programs in a macOS sandbox may do. */
export interface SeatbeltRules {
  /** Absolute paths, without symbolic links, of files and directories that programs may change. */
  readonly writable: readonly string[];
  /**
   * Absolute paths, without symbolic links, of files and directories that programs may read in addition to the
   * system's.
   */
  readonly readable: readonly string[];
  readonly network: "none" | "open";
}

/** Where macOS keeps programs, libraries and settings without secrets. */
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
 * A profile for `sandbox-exec`, in macOS's profile language: it denies everything that it does not list. Programs may
 * look up file names anywhere, which the macOS linker needs, but may not read the files.
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

/** This is the machine's own loopback, since macOS has no network namespaces. DNS lookups fail, too. */
const loopbackOnly = ["(deny network*)"];
const openNetwork = [
  "(allow network*)",
  "(allow system-socket)",
  '(allow mach-lookup (global-name "com.apple.dnssd.service") (global-name "com.apple.trustd.agent"))',
];

function allowFiles(operation: string, places: readonly string[]): string {
  return `(allow ${operation}\n${places.map((each) => `  (subpath ${quoted(each)})`).join("\n")})`;
}

/** A string of the profile language, which is based on Scheme. */
function quoted(text: string): string {
  return `"${text.replaceAll(/[\\"]/g, "\\$&")}"`;
}
