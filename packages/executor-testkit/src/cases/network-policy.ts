import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import {
  describeCodeResult,
  InvalidInputError,
  type NetworkDecision,
  type NetworkDenial,
  type UnknownHost,
} from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { CommonExecutorOptions } from "../common-executor-options.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { breakable, live, processes } from "../needs.ts";
import { followStream } from "../observe/follow-stream.ts";
import { PlayedHost } from "../observe/play-host.ts";
import type { SharedOptions } from "../shared-executors.ts";
import { fetching, inPython, networkCredentials, policies, policy, python } from "./network-credentials.ts";

const listed: SharedOptions = () => ({ network: policy() });

/** Opens a tunnel to a port of `good.example`. */
const tunnelling = (port: number): string => `import os, socket
relay = socket.create_connection(("127.0.0.1", int(os.environ["ALL_PROXY"].rsplit(":")[-1])))
relay.sendall(b"CONNECT good.example:${port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
assert b" 200 " in relay.recv(1000)
`;

const refused = "evil.example is not in this executor's network policy";

/** A host that echoes what it was asked for. */
function echo(address?: string): Promise<PlayedHost> {
  return PlayedHost.http(
    (request, response) => void response.end(`${request.headers.host ?? ""} ${request.url ?? ""}`),
    address,
  );
}

/** Listens on all addresses of this host: a place with a network of its own reaches it at one of them, even where nothing else can. */
const nearby = () => echo("0.0.0.0");

/** This host's addresses, as a list in Python. */
function ownAddresses(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const own = all.filter(({ family, internal }) => family === "IPv4" && !internal);
  return JSON.stringify(["127.0.0.1", ...own.map(({ address }) => address)]);
}

/** Asserts that code reaches the listed host, and nothing else. */
async function assertInForce(kit: CaseContext, executor: Awaited<ReturnType<CaseContext["create"]>>): Promise<void> {
  await using host = await echo();
  const urls = [`http://good.example:${host.port}/again`, `http://evil.example:${host.port}/`];
  const { output } = await kit.succeed(executor, python(urls.map(fetching).join("")));
  assert.match(output, new RegExp(`^good.example:${host.port} /again\n403 ${refused}`));
}

const reach: readonly ConformanceCase[] = [
  {
    name: "lets code talk to the listed hosts, by names that only the policy resolves",
    needs: inPython,
    async run(kit) {
      await using host = await echo();
      const executor = await kit.shared(listed);
      const result = await kit.succeed(executor, python(fetching(`http://good.example:${host.port}/page`)));
      assert.equal(result.output, `good.example:${host.port} /page\n`);
      assert.equal(result.network, undefined, "nothing was refused");
    },
  },
  {
    name: "asks about a host that is not listed while the connection waits",
    needs: inPython,
    async run(kit) {
      await using host = await echo();
      const asked: string[] = [];
      const onUnknownHost = async (unknown: UnknownHost): Promise<boolean> => {
        asked.push(`${unknown.host}:${unknown.port}`);
        await delay(200);
        return unknown.host === "new.example";
      };
      const executor = await kit.create({ network: policy({ onUnknownHost }) });
      const urls = [`http://new.example:${host.port}/`, `http://other.example:${host.port}/`];
      const result = await kit.succeed(executor, python([...urls, ...urls].map(fetching).join("")));
      const [answer, refusal] = [`new.example:${host.port} /\n`, `403 port ${host.port} of other.example[^]*`];
      assert.match(result.output, new RegExp(`^${`${answer}${refusal}`.repeat(2)}$`));
      assert.deepEqual(
        asked,
        ["new.example", "other.example"].map((name) => `${name}:${host.port}`),
      );
      assert.deepEqual(
        result.network?.map(({ host: name }) => name),
        ["other.example"],
      );
    },
  },
  {
    name: "refuses all other hosts at once, with a reason in the output and in the result",
    needs: inPython,
    async run(kit) {
      const asked: NetworkDecision[] = [];
      const onRequest = (decision: NetworkDecision): void => void asked.push(decision);
      const executor = await kit.create({ network: policy({ onRequest }) });
      const code = [`http://evil.example/`, `https://evil.example/`, `https://evil.example/again`]
        .map(fetching)
        .join("");
      const result = await kit.succeed(executor, python(code));
      assert.match(result.output, new RegExp(`^403 ${refused}\\s+.*403 ${refused}`, "s"));
      const seen = result.network?.map(({ allowed, host, port, reason }) => ({ allowed, host, port, reason }));
      assert.deepEqual(
        seen,
        [80, 443].map((port) => ({ allowed: false, host: "evil.example", port, reason: refused })),
      );
      assert.ok(describeCodeResult(result, 1).includes(refused));
      assert.deepEqual(
        asked.map(({ protocol }) => protocol),
        ["http", "connect", "connect"],
      );
      assert.equal((await kit.succeed(executor, python("print(1)"))).network, undefined, "the next call reports none");
    },
  },
  {
    name: "denies addresses of listed hosts, also while a program runs that had a connection before",
    needs: inPython,
    async run(kit) {
      await using host = await echo();
      const hosts = ["other.example", "good.example"];
      let denied: readonly NetworkDenial[] = [];
      const onRequest = ({ host: asked }: NetworkDecision): void => {
        // The program's first request is through; from now on, only one name is.
        if (asked === "other.example") denied = [{ addresses: ["0.0.0.0/0", "::/0"], except: ["good.example"] }];
      };
      const executor = await kit.create({
        network: policy({ allow: [...hosts, "127.0.0.1"], deny: () => denied, onRequest }),
      });
      const urls = ["other.example", ...hosts].map((name) => `http://${name}:${host.port}/`);
      const { output, network } = await kit.succeed(executor, python(urls.map(fetching).join("")));
      const [answer, refusal] = [`other.example:${host.port} /\n`, `403 other.example is not in .*: it is denied\n`];
      assert.match(output.replaceAll(/\n+/g, "\n"), new RegExp(`^${answer}${refusal}good.example:${host.port} /\n$`));
      assert.deepEqual(
        network?.map(({ host: name }) => name),
        ["other.example"],
      );
    },
  },
  {
    name: "leaves no way around the proxy",
    needs: inPython,
    async run(kit) {
      await using host = await nearby();
      const executor = await kit.shared(listed);
      // A denied connection may also get no answer, and then takes up its whole time limit.
      const code = `import os, socket
os.environ["RES_OPTIONS"] = "timeout:1 attempts:1 ndots:0"
def attempt(family, kind, address):
    with socket.socket(family, kind) as made:
        made.settimeout(5)
        try:
            made.connect(address)
            made.send(b"GET / HTTP/1.0\\r\\n\\r\\n")
            return made.recv(1)
        except OSError:
            return "nothing"
print(set(attempt(socket.AF_INET, socket.SOCK_STREAM, (own, ${host.port})) for own in ${ownAddresses()}) == {"nothing"} and "nothing")
for address in ("192.0.2.1", 80), ("169.254.169.254", 80):
    print(attempt(socket.AF_INET, socket.SOCK_STREAM, address))
print(attempt(socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::1", 80)))
print(attempt(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)))
try:
    print(socket.getaddrinfo("good.example", 80))
except OSError:
    print("nothing")
`;
      assert.equal((await kit.succeed(executor, python(code))).output, "nothing\n".repeat(6));
    },
  },
  {
    name: "applies to child processes, which find the proxy as well",
    needs: inPython,
    async run(kit) {
      await using host = await echo();
      const executor = await kit.shared(listed);
      const code = `import subprocess, sys
for name in "good", "evil":
    code = ${JSON.stringify(fetching("http://NAME.example:PORT/"))}.replace("NAME", name).replace("PORT", "${host.port}")
    subprocess.run([sys.executable, "-c", code], check=True, start_new_session=True)
`;
      const result = await kit.succeed(executor, python(code));
      assert.equal(result.output.replaceAll(/\n+/g, "\n"), `good.example:${host.port} /\n403 ${refused}\n`);
      assert.equal(result.network?.[0]?.host, "evil.example");
    },
  },
  {
    name: "carries a hundred connections at once, each with its own answer",
    needs: inPython,
    async run(kit) {
      await using host = await PlayedHost.http((request, response) => {
        response.end((request.url ?? "").padEnd(100_000, "."));
      });
      const executor = await kit.shared(listed);
      const code = `import concurrent.futures, urllib.request
def ask(number):
    answer = urllib.request.urlopen("http://good.example:${host.port}/%d/" % number, timeout=100).read()
    return len(answer) == 100000 and answer.startswith(b"/%d/." % number)
with concurrent.futures.ThreadPoolExecutor(100) as pool:
    print(sum(pool.map(ask, range(100))))
`;
      assert.equal((await kit.succeed(executor, python(code))).output, "100\n");
    },
  },
  {
    name: '"none" allows no connections and sets no proxy variables',
    needs: inPython,
    async run(kit) {
      await using host = await nearby();
      const executor = await kit.create({ network: "none" });
      const code = `import os, socket
print([name for name in os.environ if "PROXY" in name.upper()])
socket.setdefaulttimeout(5)
print(all(socket.socket().connect_ex((own, ${host.port})) != 0 for own in ${ownAddresses()}))
print(socket.socket().connect_ex(("192.0.2.1", 80)) != 0)
`;
      assert.equal((await kit.succeed(executor, python(code))).output, "[]\nTrue\nTrue\n");
    },
  },
  {
    name: "is checked when the executor is created",
    needs: [policies],
    async run(kit) {
      const wrong: unknown[] = [
        { allow: ["https://good.example"] },
        { allow: "good.example" },
        { allowed: [] },
        "bridge",
      ];
      for (const network of wrong) {
        const create = async () => kit.create(Object.assign<CommonExecutorOptions, object>({}, { network }));
        await kit.rejects(InvalidInputError, `network: ${JSON.stringify(network)}`, create(), /network/);
      }
    },
  },
];

const ends: readonly ConformanceCase[] = [
  {
    name: "closes a block's connections when it is aborted, and those of background processes with stop()",
    needs: [...inPython, processes, live],
    async run(kit) {
      await using host = await PlayedHost.tcp((socket) => socket.resume());
      const executor = await kit.create({ network: policy() });
      const stop = new AbortController();
      const waiting = `${tunnelling(host.port)}print("open", flush=True)\nrelay.recv(1)\n`;
      const followed = followStream(executor.streamCodeBlocks([python(waiting)], { signal: stop.signal }));
      followed.result.catch(() => {});
      await kit.eventually("the host has the connection", () => host.connections === 1 || undefined);
      stop.abort();
      await kit.eventually("the connection ends with the block", () => host.connections === 0 || undefined);
      const leaving = `${tunnelling(host.port)}
if os.fork() == 0:
    import time
    os.setsid()
    for each in 0, 1, 2:
        os.close(each)
    time.sleep(1000)
`;
      await kit.succeed(executor, python(leaving));
      assert.equal(host.connections, 1, "a process that a block leaves running keeps its connection");
      await kit.within("stop()", executor.stop());
      await kit.eventually("the connection ends with the executor", () => host.connections === 0 || undefined);
    },
  },
  {
    name: "still applies after restart(), and after stop() and start()",
    needs: inPython,
    async run(kit) {
      const executor = await kit.create({ network: policy() });
      await kit.within("start()", executor.start());
      await kit.within("restart()", executor.restart());
      await assertInForce(kit, executor);
      await kit.within("stop()", executor.stop());
      await kit.within("start()", executor.start());
      await assertInForce(kit, executor);
    },
  },
  {
    name: "still applies in the session that replaces a lost one",
    needs: [...inPython, breakable, live],
    async run(kit) {
      let reason: string | undefined;
      const executor = await kit.create({ network: policy(), onSessionLost: (said) => void (reason = said) });
      await kit.succeed(executor, python("print(1)"));
      await kit.breakPlace(executor);
      await kit.eventually("onSessionLost is called", () => reason);
      await assertInForce(kit, executor);
    },
  },
];

/** Code can connect to the hosts that a policy lists, and to no others. */
export const networkPolicy: ConformanceGroup = {
  name: "network policy",
  cases: [...reach, ...networkCredentials, ...ends],
};
