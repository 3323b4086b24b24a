import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "./free-port.ts";

const run = promisify(execFile);
const sshd = "/usr/sbin/sshd";

/** An alias in the server's `configFile`. */
export const host = "fenced-test";

/** The account of `SshServer.startForAccount`. */
const account = { name: "fenced-account", uid: 54_321 } as const;

/** A real sshd on a free port of the loopback interface, with its own keys and configuration. */
export class SshServer implements AsyncDisposable {
  readonly directory: string;
  readonly port: number;
  #process: ChildProcess;
  /** Starts the server; a program for a shell. */
  readonly #program: string;
  readonly #user: string | undefined;

  private constructor(directory: string, port: number, program: string, user?: string) {
    this.directory = directory;
    this.port = port;
    this.#program = program;
    this.#process = this.#spawn();
    this.#user = user;
  }

  /** @param settings - lines for its sshd_config. */
  static async start(...settings: readonly string[]): Promise<SshServer> {
    return SshServer.#start(settings);
  }

  /** A server whose user is an ordinary account, which only it knows: this machine gets no new user. Needs root. */
  static async startForAccount(): Promise<SshServer> {
    return SshServer.#start([], account.name);
  }

  static async #start(settings: readonly string[], user?: string): Promise<SshServer> {
    const directory = await mkdtemp(path.join(tmpdir(), "fenced-sshd-"));
    const port = await freePort();
    await makeKeys(directory);
    for (const name of ["tmp", "home"]) await mkdir(path.join(directory, name));
    await writeFile(path.join(directory, "sshd_config"), serverConfig(directory, port, settings));
    // sshd, started by root, changes into this empty directory, which an init system would create.
    if (process.getuid?.() === 0) await mkdir("/run/sshd", { recursive: true });
    // sshd ends with this program, however that ends, and its directory is removed unless it should stay.
    const daemon =
      user === undefined ? `"$0" -D -e -f "$1/sshd_config"` : `unshare --mount sh -c '${withAccounts}' "$0" "$1"`;
    const program = `${daemon} & read -r line; kill "$!"; [ "$line" = stay ] || rm -rf "$1"`;
    if (user !== undefined) await makeAccount(directory);
    const server = new SshServer(directory, port, program, user);
    await server.#untilListening();
    await writeFile(server.configFile, await server.#clientConfig());
    return server;
  }

  /** A configuration for ssh in which the alias `host` is this server, with its host key and a key that it accepts. */
  get configFile(): string {
    return path.join(this.directory, "config");
  }

  /** The temporary directory of the user that logs in. */
  get temporary(): string {
    return path.join(this.directory, "tmp");
  }

  /** Another configuration: lines before those of the alias. */
  async configWith(...lines: readonly string[]): Promise<string> {
    const file = path.join(this.directory, `config-${Math.random().toString(36).slice(2)}`);
    await writeFile(file, `${lines.join("\n")}\n${await readFile(this.configFile, "utf8")}`);
    return file;
  }

  /** The processes of this server that hold its connections. */
  async connections(): Promise<number[]> {
    const { stdout } = await run("ps", ["-A", "-o", "pid=,ppid=,args="], { maxBuffer: 64 * 1_048_576 });
    const rows = stdout.split("\n").map((line) => line.trim().split(/\s+/));
    const listener = rows.find(
      (row) => row.join(" ").includes(path.join(this.directory, "sshd_config")) && row[2] !== "sh",
    );
    return listener ? rows.filter(([, parent]) => parent === listener[0]).map(([pid]) => Number(pid)) : [];
  }

  /** What executors have on this server: their directories, and processes started through it. */
  async remains(): Promise<string[]> {
    const directories = await readdir(this.temporary);
    const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    const found = processes.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
      return `\0${environment}`.includes(`\0TMPDIR=${this.temporary}\0`) ? [`process ${pid}`] : [];
    });
    return [...directories, ...(await Promise.all(found)).flat()];
  }

  /** Ends the server; its connections live on, and its directory stays. */
  async stopListening(): Promise<void> {
    if (this.#process.exitCode !== null) return;
    const ended = once(this.#process, "exit");
    this.#process.stdin?.end("stay\n");
    await ended;
  }

  /** Starts it again, on the same port. */
  async listenAgain(): Promise<void> {
    await this.stopListening();
    this.#process = this.#spawn();
    await this.#untilListening();
  }

  #spawn(): ChildProcess {
    return spawn("sh", ["-c", this.#program, sshd, this.directory], { stdio: ["pipe", "ignore", "ignore"] });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopListening();
    await rm(this.directory, { recursive: true, force: true });
  }

  async #untilListening(): Promise<void> {
    for (let attempt = 0; attempt < 200; attempt += 1) {
      const socket = net.connect(this.port, "127.0.0.1");
      const greeted = await Promise.race([once(socket, "data"), once(socket, "close")]).catch(() => []);
      socket.destroy();
      if (greeted[0] instanceof Buffer) return;
      await sleep(50);
    }
    throw new Error("sshd does not answer");
  }

  async #clientConfig(): Promise<string> {
    const key = await readFile(path.join(this.directory, "host_key.pub"), "utf8");
    await writeFile(path.join(this.directory, "known_hosts"), `[127.0.0.1]:${this.port} ${key}`);
    return [
      `Host ${host}`,
      "  HostName 127.0.0.1",
      `  Port ${this.port}`,
      ...(this.#user === undefined ? [] : [`  User ${this.#user}`]),
      `  IdentityFile ${this.directory}/client_key`,
      "  IdentitiesOnly yes",
      "  IdentityAgent none",
      "Host *",
      `  UserKnownHostsFile ${this.directory}/known_hosts`,
      "  GlobalKnownHostsFile /dev/null",
      "  StrictHostKeyChecking yes",
      "",
    ].join("\n");
  }
}

/** Starts sshd where the list of users is another one. */
const withAccounts = `mount --bind "$1/passwd" /etc/passwd && exec "$0" -D -e -f "$1/sshd_config"`;

async function makeAccount(directory: string): Promise<void> {
  const { name, uid } = account;
  const home = path.join(directory, "home");
  await writeFile(
    path.join(directory, "passwd"),
    `${await readFile("/etc/passwd", "utf8")}${name}:x:${uid}:${uid}::${home}:/bin/sh\n`,
  );
  await chmod(directory, 0o755);
  for (const place of [home, path.join(directory, "tmp")]) await chown(place, uid, uid);
}

async function makeKeys(directory: string): Promise<void> {
  for (const name of ["host_key", "client_key", "other_key"]) {
    await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", path.join(directory, name)]);
  }
  await writeFile(
    path.join(directory, "authorized_keys"),
    await readFile(path.join(directory, "client_key.pub"), "utf8"),
  );
}

function serverConfig(directory: string, port: number, settings: readonly string[]): string {
  return [
    ...settings,
    "ListenAddress 127.0.0.1",
    `Port ${port}`,
    `HostKey ${directory}/host_key`,
    // OpenSSH's default exchange of keys takes seven times as long.
    "KexAlgorithms curve25519-sha256",
    `AuthorizedKeysFile ${directory}/authorized_keys`,
    `PidFile ${directory}/pid`,
    // A home without shell start-up files, which could take longer than everything under test.
    `SetEnv TMPDIR=${directory}/tmp HOME=${directory}/home "PATH=${process.env.PATH ?? ""}"`,
    // Simultaneous unauthenticated connections; on a busy machine each takes a while.
    "MaxStartups 100",
    "StrictModes no",
    "UsePAM no",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "",
  ].join("\n");
}
