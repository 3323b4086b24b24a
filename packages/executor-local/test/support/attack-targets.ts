import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import dgram from "node:dgram";
import { once } from "node:events";
import { chmod, chown, copyFile, mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import net from "node:net";
import { homedir, networkInterfaces, tmpdir } from "node:os";
import path from "node:path";

/** The targets of hostile code. They really exist, and can be reached without a sandbox. */
export interface AttackTargets extends AsyncDisposable {
  /** What attacks are told about them. */
  readonly env: Readonly<Record<string, string>>;
  /** A directory that a sandbox has to show, because it contains the setuid program. */
  readonly shown: string;
  /** The attacker's home directory, with a secret in it. */
  readonly home: string;
}

/** Sets up the targets, for attacks by a user. */
export async function attackTargets(user: number): Promise<AttackTargets> {
  const mark = `fenced-victim-${randomUUID()}`;
  // An ordinary user cannot get into the home directory of root, who runs the tests.
  const places = [user === 0 ? homedir() : "/home", tmpdir()];
  const [home, temporary] = await Promise.all(places.map((each) => mkdtemp(path.join(each, "fenced-test-"))));
  if (home === undefined || temporary === undefined) throw new Error("no directories");
  const shown = path.join(temporary, "shown");
  const program = await setuidProgram(temporary, shown);
  const secretFile = path.join(home, "secret");
  await writeFile(secretFile, mark);
  await writeFile(path.join(temporary, "secret"), mark);
  await Promise.all(
    [home, temporary, secretFile, path.join(temporary, "secret")].map((each) => chown(each, user, user)),
  );
  await Promise.all([home, temporary].map((each) => chmod(each, 0o755)));
  const victim = spawn("sleep", ["1000"], { argv0: mark, stdio: "ignore", uid: user, gid: user });
  await once(victim, "spawn");
  const servers = await startServers(temporary, mark);
  await chmod(path.join(temporary, "socket"), 0o777);
  const env = {
    SECRET: secretFile,
    SECRET_TEXT: mark,
    TEMPORARY: path.join(temporary, "secret"),
    USERS: "root:",
    VICTIM: String(victim.pid),
    MARK: mark,
    SETUID: program,
    SETUID_OWNER: String((await stat(program)).uid),
    DISK: "7:0",
    ...servers.env,
  };
  return {
    env,
    shown,
    home,
    [Symbol.asyncDispose]: async () => {
      servers.close();
      await ended(victim);
      await Promise.all([home, temporary].map((each) => rm(each, { recursive: true, force: true })));
    },
  };
}

/** A copy of `id` that runs as somebody who is neither root nor the attacker. */
async function setuidProgram(directory: string, shown: string): Promise<string> {
  await mkdir(shown);
  await chmod(directory, 0o755);
  const program = path.join(shown, "id");
  await copyFile("/usr/bin/id", program);
  await chown(program, 12_345, 12_345);
  await chmod(program, 0o4755);
  return program;
}

async function ended(child: ChildProcess): Promise<void> {
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

async function startServers(
  directory: string,
  mark: string,
): Promise<{ readonly env: Record<string, string>; readonly close: () => void }> {
  const servers = Array.from({ length: 5 }, () => net.createServer((socket) => socket.end()));
  const addresses: net.ListenOptions[] = [
    { host: "127.0.0.1", port: 0 },
    { host: "::1", port: 0 },
    { host: "0.0.0.0", port: 0 },
    { path: path.join(directory, "socket") },
    { path: `\0${mark}` },
  ];
  await Promise.all(
    servers.map(async (server, index) => {
      server.listen(addresses[index]);
      await once(server, "listening");
    }),
  );
  const udp = dgram.createSocket("udp4", (_message, { port, address }) => udp.send("y", port, address));
  udp.bind(0, "127.0.0.1");
  await once(udp, "listening");
  const port = (index: number): string => {
    const address = servers[index]?.address();
    return typeof address === "object" && address !== null ? String(address.port) : "0";
  };
  const outside = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .find(({ internal, family }) => !internal && family === "IPv4");
  return {
    env: {
      PORT: port(0),
      PORT6: port(1),
      PORT_ALL: port(2),
      ADDRESS: outside?.address ?? "127.0.0.1",
      PORT_UDP: String(udp.address().port),
      SOCKET: path.join(directory, "socket"),
      ABSTRACT: mark,
    },
    close: () => {
      for (const server of servers) server.close();
      udp.close();
    },
  };
}
