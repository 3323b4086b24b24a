/**
 * Puts load on the service of `examples/production` as its users would: uploads, runs whose output is read to its end, clients that
 * disconnect midway, containers that are killed, and SIGTERM. Prints what was lost or mixed up, the containers, processes and
 * folders that were left, and the peak memory.
 *
 *     npx tsx --conditions=@fenced/source benchmarks/service/load.ts --users 30 --seconds 120 --terms 20
 *
 * Exits with 1 if a result was lost or mixed up, anything was left, or a service did not exit.
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { readEventStream } from "@fenced/core/web";
import { startRedis } from "@fenced/test-support/databases";

const { values } = parseArgs({
  options: {
    users: { type: "string", default: "30" },
    seconds: { type: "string", default: "120" },
    terms: { type: "string", default: "20" },
    image: { type: "string", default: "fenced-test:python" },
  },
});
const program = fileURLToPath(new URL("../../examples/production/service.ts", import.meta.url));
const counts = { good: 0, left: 0, failedByKill: 0, refused: 0, lost: 0, mixedUp: 0, kills: 0 };
/** Containers by the host name that their programs print, and when each user's container was last killed. */
const containers = new Map<string, string>();
const killedAt = new Map<string, number>();

/** Where the services have their temporary folders, and a variable that all their processes on this host have. */
const folder = await mkdtemp(path.join(tmpdir(), "load-"));
const redis = await startRedis();
const checkpoints = await mkdtemp(path.join(tmpdir(), "load-checkpoints-"));
const mark = `FENCED_LOAD=${randomUUID()}`;

interface Service {
  readonly process: ChildProcess;
  readonly url: string;
}

async function startService(users: number, graceMs: number): Promise<Service> {
  const TOKENS = Array.from({ length: users }, (_, user) => `t${user}=u${user}`).join(",");
  const child = spawn(process.execPath, ["--import", "tsx", "--conditions=@fenced/source", program], {
    env: {
      ...process.env,
      PORT: "0",
      TOKENS,
      SANDBOX_IMAGE: values.image,
      GRACE_MS: String(graceMs),
      REDIS_URL: redis.url,
      CHECKPOINTS: checkpoints,
      TMPDIR: folder,
      FENCED_LOAD: mark.split("=")[1],
    },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  return { process: child, url: /http:\S+/.exec(line)?.[0] ?? "" };
}

function send(url: string, user: string, init: RequestInit): Promise<Response> {
  return fetch(url, { ...init, headers: { authorization: `Bearer t${user.slice(1)}` } });
}

/** One upload and one run that reads it. Some clients disconnect after the first output. */
async function useOnce(url: string, user: string): Promise<void> {
  const secret = `${user}-${randomUUID()}`;
  const leaves = Math.random() < 0.2;
  const startedAt = Date.now();
  const code = `import socket, time; print(socket.gethostname(), flush=True); time.sleep(${Math.random().toFixed(2)}); print(open("secret").read())`;
  try {
    const upload = await send(`${url}/files/secret`, user, { method: "PUT", body: secret });
    if (upload.status === 429) counts.refused += 1;
    if (upload.status !== 204) throw new Error(`upload: ${upload.status} ${await upload.text()}`);
    const body = JSON.stringify([{ language: "python", code }]);
    for await (const event of readEventStream(await send(`${url}/runs`, user, { method: "POST", body }))) {
      const text = JSON.stringify(event);
      const host = /"stdout".*"text":"(fenced-[0-9a-f-]{36})/.exec(text)?.[1];
      if (host !== undefined) containers.set(host, user);
      if (host !== undefined && leaves) {
        counts.left += 1;
        return;
      }
      if (!("type" in event) || event.type !== "result") continue;
      if (text.includes(secret)) counts.good += 1;
      else if (/"exitCode":0/.test(text) || /u\d+-[0-9a-f]{8}-/.test(text)) counts.mixedUp += 1;
      else throw new Error(text);
      return;
    }
    throw new Error("The stream ended without a result.");
  } catch (error) {
    // A user learns of a run that a kill ended; any other failure counts as lost.
    if ((killedAt.get(user) ?? 0) >= startedAt - 10_000) counts.failedByKill += 1;
    else {
      counts.lost += 1;
      console.error(`lost: ${user}: ${String(error).slice(0, 300)}`);
    }
  }
}

async function killNow(): Promise<void> {
  const all = [...containers];
  const [id, user] = all[Math.floor(Math.random() * all.length)] ?? [];
  if (id === undefined || user === undefined) return;
  killedAt.set(user, Date.now());
  const killed = await promisify(execFile)("docker", ["rm", "--force", id]).catch(() => undefined);
  killedAt.set(user, Date.now());
  containers.delete(id);
  if (killed) counts.kills += 1;
}

async function terminate({ process: child }: Service): Promise<{ exited: boolean; milliseconds: number }> {
  const at = Date.now();
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  const code = await Promise.race([exit.then(([status]) => Number(status)), sleep(60_000, -1, { ref: false })]);
  if (code === -1) child.kill("SIGKILL");
  return { exited: code === 0, milliseconds: Date.now() - at };
}

/** Containers seen during this load that still exist, its services' processes, and the folders that they created. */
async function left(): Promise<string[]> {
  return [...(await leftContainers()), ...(await leftProcesses()), ...(await leftFolders())];
}

async function leftContainers(): Promise<string[]> {
  const { stdout } = await promisify(execFile)("docker", ["ps", "--all", "--format", "{{.Names}}"]);
  const names = stdout.split("\n");
  return names.filter((name) => seen.has(name)).map((name) => `container ${name}`);
}

async function leftProcesses(): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const about = ["environ", "cmdline"].map((name) => readFile(`/proc/${pid}/${name}`, "latin1").catch(() => ""));
      const [environment = "", command = ""] = await Promise.all(about);
      const isTheirs = environment.split("\0").includes(mark) || command.includes(folder);
      return isTheirs ? [`process ${pid}: ${command.replaceAll("\0", " ").slice(0, 150)}`] : [];
    }),
  );
  return found.flat();
}

/** Ignores the caches of tsx and Node, which are not the services'. */
async function leftFolders(): Promise<string[]> {
  return (await readdir(folder))
    .filter((name) => !/^(?:tsx-|node-compile-cache)/.test(name))
    .map((name) => `folder ${name}`);
}

/** Leashes and containers end a moment after their program: whatever still exists after ten seconds was left behind. */
async function lastingly(): Promise<string[]> {
  for (let waited = 0; waited < 10; waited += 1) {
    if ((await left()).length === 0) return [];
    await sleep(1000);
  }
  return left();
}
const seen = new Set<string>();

async function memoryPeak({ process: { pid } }: Service): Promise<string> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return /VmHWM:\s*(.*)/.exec(status)?.[1] ?? "not known";
}

const users = Array.from({ length: Number(values.users) }, (_, user) => `u${user}`);
const service = await startService(users.length, 10_000);
const until = Date.now() + 1000 * Number(values.seconds);
const killing = (async () => {
  while (Date.now() < until) {
    await sleep(4000);
    await killNow();
  }
})();
await Promise.all(
  users.map(async (user) => {
    while (Date.now() < until) {
      await useOnce(service.url, user);
      for (const id of containers.keys()) seen.add(id);
      await sleep(Math.random() * 1000);
    }
  }),
);
await killing;
const peak = await memoryPeak(service);
const end = await terminate(service);
console.log({ ...counts, memoryPeak: peak, containersSeen: seen.size, exited: end.exited, exitMs: end.milliseconds });
console.log("left:", await lastingly());

let exits = 0;
for (let term = 0; term < Number(values.terms); term++) {
  const one = await startService(3, 1000);
  const using = ["u0", "u1", "u2"].map((user) => useOnce(one.url, user).catch(() => {}));
  await sleep(Math.random() * 3000);
  for (const user of ["u0", "u1", "u2"]) killedAt.set(user, Date.now());
  const { exited } = await terminate(one);
  for (const user of ["u0", "u1", "u2"]) killedAt.set(user, Date.now());
  await Promise.all(using);
  if (exited) exits += 1;
  for (const id of containers.keys()) seen.add(id);
}
const remains = await lastingly();
await redis[Symbol.asyncDispose]();
await rm(checkpoints, { recursive: true });
await rm(folder, { recursive: true, force: true });
for (const each of remains) console.log(each);
console.log(
  `exits after SIGTERM: ${exits} of ${values.terms}; containers, processes and folders left: ${remains.length}; lost in all: ${counts.lost}`,
);
const isWell = counts.lost + counts.mixedUp + remains.length === 0;
if (!isWell || exits < Number(values.terms) || !end.exited) process.exitCode = 1;
