import { existsSync, readlinkSync, realpathSync } from "node:fs";
import { errorCode } from "@fenced/executor-kit";
import { isWithin } from "./shared-paths.ts";

/** Where systems keep their programs and libraries; some of these are links into `/usr`. */
const programDirectories = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] as const;

/**
 * Settings that programs read and that contain no secrets: the dynamic linker's, certificates, time zone, fonts.
 * Excludes users, passwords, host names, mounts and networks; the sandbox has its own files for what programs need to
 * know about these.
 */
const settings = [
  ["ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "timezone", "locale.alias", "mime.types"],
  ["protocols", "services", "magic", "inputrc", "terminfo", "bash.bashrc", "os-release", "debian_version"],
  ["ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "ca-certificates", "pki/tls/certs", "pki/ca-trust/extracted"],
  ["fonts", "matplotlibrc", "R", "perl", "python3", "java-17-openjdk", "java-21-openjdk"],
].flat();

/**
 * The parts of `/proc` that reveal or change things about the whole machine. Much of it is open to the host's root,
 * even without any capability, and sandboxed programs are that user if this program runs as root.
 */
const proc = {
  readOnly: ["sys", "pressure"],
  hiddenFiles: [
    ["kcore", "kmsg", "kallsyms", "keys", "key-users", "sysrq-trigger", "mtrr", "config.gz"],
    ["iomem", "ioports", "slabinfo", "vmallocinfo", "pagetypeinfo", "kpagecount", "kpageflags", "kpagecgroup"],
    ["timer_list", "timer_stats", "sched_debug", "latency_stats"],
  ].flat(),
  hiddenDirectories: ["acpi", "asound", "bus", "driver", "dynamic_debug", "fs", "irq", "scsi"],
};

/** True if an absolute path is in a system directory that every sandbox shows. */
export function isSystemPath(place: string): boolean {
  return programDirectories.some((each) => isWithin(place, each));
}

/** Bubblewrap's options that show the system's programs, libraries and settings, read-only. */
export function systemOptions(): string[] {
  const directories = programDirectories.filter(existsSync).flatMap((each) => {
    const target = linkTarget(each);
    return target === undefined ? ["--ro-bind", each, each] : ["--symlink", target, each];
  });
  const files = settings
    .map((each) => `/etc/${each}`)
    .filter(existsSync)
    // The target of a setting's link need not exist in the sandbox.
    .flatMap((each) => ["--ro-bind", realpathSync(each), each]);
  return [...directories, ...files];
}

/** The target of a symbolic link; `undefined` if the path is not one. */
function linkTarget(place: string): string | undefined {
  try {
    return readlinkSync(place);
  } catch (error) {
    if (errorCode(error) === "EINVAL") return undefined;
    throw error;
  }
}

/** Bubblewrap's options for a `/proc` of the sandbox's own processes. */
export function procOptions(): string[] {
  const there = (name: string): boolean => existsSync(`/proc/${name}`);
  return [
    "--proc",
    "/proc",
    ...proc.readOnly.filter(there).flatMap((each) => ["--ro-bind", `/proc/${each}`, `/proc/${each}`]),
    ...proc.hiddenFiles.filter(there).flatMap((each) => ["--ro-bind", "/dev/null", `/proc/${each}`]),
    ...proc.hiddenDirectories
      .filter(there)
      .flatMap((each) => ["--tmpfs", `/proc/${each}`, "--remount-ro", `/proc/${each}`]),
  ];
}
