/**
 * Ends the containers of a program that has died. Runs as `node --input-type=module -e`, without dependencies.
 *
 * Arguments: what to do, as JSON (`LeashOrder` in container-leash.ts), and `creating` if the program died while the daemon was
 * creating a container, which may therefore appear later.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";

const [, order = "", phase] = process.argv;
const { transport, label, end } = JSON.parse(order);
/** Milliseconds after which it gives up on a daemon that does not answer, or a container that does not end. */
const patienceMs = 90_000;
const answerMs = 20_000;

function connect() {
  if (transport.kind === "ssh") {
    const { stdin, stdout } = spawn("ssh", transport.words, { stdio: ["pipe", "pipe", "ignore"] });
    return Duplex.from({ writable: stdin, readable: stdout });
  }
  if (transport.kind === "socket") return net.connect(transport.path);
  const { host, port, certPath, verify } = transport;
  if (transport.kind === "tcp") return net.connect(port, host);
  return tls.connect({
    host,
    port,
    servername: net.isIP(host) ? "" : host,
    rejectUnauthorized: verify,
    ...readCertificates(certPath),
  });
}

/** @param {string | undefined} directory */
function readCertificates(directory) {
  if (directory === undefined) return {};
  /** @param {string} name */
  const read = (name) =>
    existsSync(path.join(directory, name)) ? readFileSync(path.join(directory, name)) : undefined;
  return { ca: read("ca.pem"), cert: read("cert.pem"), key: read("key.pem") };
}

/**
 * Sends one request over a new connection.
 *
 * @param {string} method
 * @param {string} target
 */
async function ask(method, target) {
  const connection = connect();
  const headers = { Host: "docker", Connection: "close" };
  const request = http.request({ method, path: target, headers, createConnection: () => connection });
  const giveUp = setTimeout(() => connection.destroy(new Error("no answer")), answerMs);
  try {
    request.end();
    const [answer] = await once(request, "response");
    let body = "";
    for await (const chunk of answer) body += chunk;
    return { status: answer.statusCode, body };
  } finally {
    clearTimeout(giveUp);
    connection.destroy();
  }
}

/** Ends the containers; returns how many there were, and whether one may still appear. */
async function endContainers() {
  const filters = encodeURIComponent(JSON.stringify({ label: [label] }));
  const { status, body } = await ask("GET", `/containers/json?all=1&filters=${filters}`);
  if (status !== 200) throw new Error(body);
  let count = 0;
  for (const { Id: id, State: state } of JSON.parse(body)) {
    const started = state !== "created" && state !== "configured";
    if (!started || end === "remove") {
      count += 1;
      await ask("DELETE", `/containers/${id}?force=1&v=1`);
    } else if (end === "kill" && state === "running") {
      count += 1;
      await ask("POST", `/containers/${id}/kill`);
    }
  }
  return count;
}

let awaited = phase === "creating";
const giveUp = performance.now() + patienceMs;
for (let pause = 50; performance.now() < giveUp; pause = Math.min(pause * 1.5, 2000)) {
  const count = await endContainers().catch(() => 1);
  if (count === 0 && !awaited) break;
  // At most one container was being created.
  if (count > 0) awaited = false;
  await sleep(pause);
}
process.exit();
