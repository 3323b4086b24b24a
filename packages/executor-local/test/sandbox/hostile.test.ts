import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { needs } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { attackTargets, type AttackTargets } from "../support/attack-targets.ts";
import { hostCommand } from "../support/host-command.ts";

/** Who succeeds without a sandbox; `untried`: what would harm this machine, or what it may well refuse by itself. */
type Outside = "anybody" | "root" | "untried";

/** Attempts of `fixtures/attacks.py`, what they aim at, and who succeeds without a sandbox. */
const attempts: readonly (readonly [attempt: string, what: string, outside: Outside])[] = [
  ["home", "a file in the home directory", "anybody"],
  ["home_by_link", "the same, through a link in the workspace", "anybody"],
  ["other_tmp", "the host's temporary files", "anybody"],
  ["passwords", "/etc/shadow", "root"],
  ["users", "the machine's users", "anybody"],
  ["other_process", "signals to a process of the same user", "anybody"],
  ["see_processes", "the command lines of the host's processes", "anybody"],
  ["host_variables", "this program's own variables", "root"],
  ["trace", "attaching to a process of the same user", "untried"],
  ["trace_first", "attaching to the sandbox's supervisor", "untried"],
  ["read_first", "the supervisor's variables", "untried"],
  ["kill_first", "killing the supervisor", "untried"],
  ["socket_file", "a socket of the host", "anybody"],
  ["docker_socket", "the socket of the Docker daemon", "untried"],
  ["abstract_socket", "an abstract socket, as D-Bus and X have", "anybody"],
  ["session_keyring", "the session's keyring", "anybody"],
  ["add_key", "new keys", "anybody"],
  ["kernel_settings", "writes to /proc/sys", "root"],
  ["kernel_requests", "writes to /proc/sysrq-trigger", "untried"],
  ["any_setting", "writes to any other kernel file", "anybody"],
  ["all_of_kernel", "kernel files that only root may read", "root"],
  ["devices_settings", "writes to /sys", "root"],
  ["kernel_log", "the kernel's log", "untried"],
  ["kernel_memory", "/proc/kcore", "untried"],
  ["setuid_program", "a setuid program", "anybody"],
  ["make_setuid", "making a setuid program, for others to run", "anybody"],
  ["create_setuid", "creating one", "anybody"],
  ["make_device", "making a device file", "root"],
  ["change_devices", "modes of the host's device files", "root"],
  ["change_kernel_files", "modes of the machine's files in /proc", "root"],
  ["raw_disk", "the raw disk", "untried"],
  ["become_root", "becoming root", "root"],
  ["new_namespace", "namespaces of its own", "untried"],
  ["new_namespace_by_clone", "the same, by clone", "untried"],
  ["mount_something", "mounts", "untried"],
  ["remount_system", "making /usr writable", "untried"],
  ["change_system", "writes to /usr", "untried"],
  ["loopback4", "a server on the host's loopback", "anybody"],
  ["loopback6", "the same, by IPv6", "anybody"],
  ["loopback_udp", "the same, by UDP", "anybody"],
  ["interface", "a server on another address of the host", "anybody"],
  ["raw_packets", "raw packets", "root"],
  ["hypervisor", "sockets of the hypervisor (vsock)", "untried"],
  ["kernel_crypto", "the kernel's crypto sockets", "untried"],
  ["kernel_events", "the kernel's device events", "anybody"],
  ["type_into_terminal", "typing into a terminal (TIOCSTI)", "root"],
  ["controlling_terminal", "the terminal that this program was started from", "untried"],
  ["around_the_filter", "system calls around the filter (io_uring)", "untried"],
  ["shared_requests", "asynchronous I/O, which all users share", "anybody"],
  ["lease_file", "leases, which delay those who open a file", "anybody"],
  ["strange_pair", "pairs of sockets of other families", "untried"],
  ["kernel_programs", "programs in the kernel (bpf)", "untried"],
  ["old_calls", "system calls of 32-bit programs", "untried"],
];

/** Whether a user succeeds without a sandbox; otherwise, the test could not fail. */
const succeeds = (outside: Outside, user: number): boolean =>
  outside === "anybody" || (outside === "root" && user === 0);

/** Lets a user try everything. */
async function tryAll(
  user: number,
  sandboxed: boolean,
  { env, shown, home }: AttackTargets,
): Promise<Record<string, string>> {
  const [program, ...words] = await hostCommand("runs-attacks.ts");
  const own = { HOST_SECRET: "this program's", PATH: "/usr/local/bin:/usr/bin:/bin", HOME: home };
  const child = spawn(program, words, { env: own, stdio: ["pipe", "pipe", "inherit"] });
  const attacks = attempts.filter(([, , outside]) => sandboxed || succeeds(outside, user)).map(([name]) => name);
  child.stdin.end(JSON.stringify({ user, attacks, env, readable: [shown], sandboxed }));
  const [output] = await Promise.all([text(child.stdout), once(child, "exit")]);
  return z.record(z.string(), z.string()).parse(JSON.parse(output));
}

describe.each([
  ["root", 0],
  ["an ordinary user", 65_534],
])("hostile code in a sandbox of %s", needs("python3", "bubblewrap", "root"), (_, user) => {
  let targets: AttackTargets;
  let inside: Record<string, string>;
  let outside: Record<string, string>;
  beforeAll(async () => {
    targets = await attackTargets(user);
    [inside, outside] = await Promise.all([tryAll(user, true, targets), tryAll(user, false, targets)]);
  }, 120_000);
  afterAll(() => targets[Symbol.asyncDispose]());

  it.each(attempts)("is stopped: %s (%s)", (name, _what, who) => {
    expect(inside[name]).toMatch(/^stopped/);
    expect(outside[name]).toBe(succeeds(who, user) ? "reached" : undefined);
  });
});
