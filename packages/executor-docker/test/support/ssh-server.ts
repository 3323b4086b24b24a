import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "@fenced/test-support/free-port";

/** An OpenSSH server on the loopback interface that lets this user in with a key. */
export interface SshServer extends AsyncDisposable {
  readonly port: number;
  /** Holds a program `ssh` that knows the key and the server: OpenSSH's own with this server's configuration. */
  readonly programs: string;
  /** As `programs`, but the server's key is not known. */
  readonly strangerPrograms: string;
}

/** Starts one whose files are in `directory`. */
export async function startSshServer(directory: string): Promise<SshServer> {
  const port = await freePort();
  const file = (name: string): string => join(directory, name);
  for (const name of ["host-key", "key"]) await run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file(name));
  await writeFile(file("authorized"), await readFile(file("key.pub")));
  const [type, hostKey] = (await readFile(file("host-key.pub"), "utf8")).split(" ");
  await writeFile(file("known"), `[127.0.0.1]:${port} ${type} ${hostKey}\n`);
  await writeFile(file("unknown"), "");
  const config = [
    `HostKey ${file("host-key")}`,
    `AuthorizedKeysFile ${file("authorized")}`,
    "PidFile none",
    "StrictModes no",
    "PermitRootLogin yes",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "UsePAM no",
  ];
  await writeFile(file("sshd_config"), `${config.join("\n")}\n`);
  // Debian's sshd needs this directory, which nothing else creates if there is no init.
  if (process.getuid?.() === 0) await mkdir("/run/sshd", { recursive: true });
  const words = ["-D", "-e", "-f", file("sshd_config"), "-o", "ListenAddress=127.0.0.1", "-p", String(port)];
  const server = spawn("/usr/sbin/sshd", words, { stdio: "ignore" });
  const exited = once(server, "exit");
  await listens(port);
  return {
    port,
    programs: await makeProgram(directory, "known"),
    strangerPrograms: await makeProgram(directory, "unknown"),
    async [Symbol.asyncDispose]() {
      server.kill();
      await exited;
    },
  };
}

async function makeProgram(directory: string, known: string): Promise<string> {
  const programs = join(directory, `programs-${known}`);
  await mkdir(programs);
  const config = join(directory, `config-${known}`);
  const lines = [
    `IdentityFile ${join(directory, "key")}`,
    "IdentitiesOnly yes",
    `UserKnownHostsFile ${join(directory, known)}`,
    "GlobalKnownHostsFile /dev/null",
    `User ${userInfo().username}`,
  ];
  await writeFile(config, `${lines.join("\n")}\n`);
  await writeFile(join(programs, "ssh"), `#!/bin/sh\nexec /usr/bin/ssh -F '${config}' "$@"\n`);
  await chmod(join(programs, "ssh"), 0o755);
  return programs;
}

async function run(program: string, ...words: readonly string[]): Promise<void> {
  await promisify(execFile)(program, words);
}

async function listens(port: number): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const socket = connect(port, "127.0.0.1");
    try {
      await once(socket, "connect");
      return;
    } catch (error) {
      if (attempt > 100) throw error;
      await sleep(50);
    } finally {
      socket.destroy();
    }
  }
}
