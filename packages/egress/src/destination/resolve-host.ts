import dns from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { within } from "@fenced/core/abort";
import { canonicalHost } from "@fenced/core/network";

/** Maximum concurrent questions to the system: each occupies one of the few threads that all of Node's file calls share. */
const mostLookups = 2;
/** Milliseconds after which the system is asked, too: it may know a way that plain DNS does not. */
const patienceMs = 2000;
/** Milliseconds to wait for the addresses of the newer version once those of the older one are known. */
const secondPatienceMs = 300;
const hostsFile = process.platform === "win32" ? String.raw`C:\Windows\System32\drivers\etc\hosts` : "/etc/hosts";
let running = 0;
const waiting: (() => void)[] = [];

/**
 * Looks into the `hosts` file, then asks the name servers, and the system only for what they do not know. A question to
 * a name server takes no thread, so a name that resolves slowly does not hold up the names of other sessions.
 */
export async function resolveHost(host: string, signal: AbortSignal): Promise<string[]> {
  const listed = await fromHostsFile(host);
  if (listed.length > 0) return listed;
  const asked = fromNameServers(host);
  const answer = await within(patienceMs, asked);
  signal.throwIfAborted();
  if (answer !== undefined && answer.length > 0) return answer;
  const system = fromSystem(host, signal);
  if (answer !== undefined) return system;
  const found = asked.then((addresses) => (addresses.length > 0 ? addresses : system));
  return Promise.any([found, system]).catch(() => system);
}

async function fromHostsFile(host: string): Promise<string[]> {
  const text = await readFile(hostsFile, "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    return names.some((name) => canonicalHost(name) === host) ? [address] : [];
  });
}

/** Empty if they do not know it. */
async function fromNameServers(host: string): Promise<string[]> {
  const newer = dns.resolve6(host).catch(() => []);
  const older = await dns.resolve4(host).catch(() => []);
  const more = older.length === 0 ? await newer : await within(secondPatienceMs, newer);
  return [...older, ...(more ?? [])];
}

async function fromSystem(host: string, signal: AbortSignal): Promise<string[]> {
  if (running < mostLookups) running += 1;
  else {
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
    });
  }
  try {
    signal.throwIfAborted();
    return (await dns.lookup(host, { all: true, order: "verbatim" })).map(({ address }) => address);
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  }
}
