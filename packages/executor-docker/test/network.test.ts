import { createHash } from "node:crypto";
import { describeCodeResult, type NetworkDecision } from "@fenced/core";
import { toJson } from "@fenced/core/web";
import { needs } from "@fenced/test-support";
import { playHost, playTcp } from "@fenced/test-support/loopback-hosts";
import { describe, expect, it, onTestFinished } from "vitest";
import { DockerCommandLineCodeExecutor, type DockerExecutorOptions, packageIndexes } from "../src/index.ts";
import { createExecutor, inspect, printed, run } from "./support/create-executor.ts";
import { docker } from "./support/docker-cli.ts";
import { nodeImage, pythonImage } from "./support/images.ts";
import { policy } from "./support/network-policy.ts";

const fetchProgram = (url: string): string =>
  `import urllib.request\nprint(urllib.request.urlopen(${JSON.stringify(url)}).read().decode())`;

describe("a network policy", { ...needs("docker"), timeout: 120_000 }, () => {
  it("lets code talk to the listed hosts, and reports what else it requested", async () => {
    const port = await playHost();
    const decisions: NetworkDecision[] = [];
    const network = policy({ allow: [`good.example:${port}`], onRequest: (decision) => void decisions.push(decision) });
    await using executor = createExecutor({ network });
    const good = await run(executor, "python", fetchProgram(`http://good.example:${port}/page`));
    expect(good).toMatchObject({ exitCode: 0, output: `host of good.example:${port}: GET /page\n` });
    expect(good.network).toBeUndefined();
    const reason = "evil.example is not in this executor's network policy";
    const refused = await run(executor, "python", fetchProgram("https://evil.example/"));
    expect(refused.output).toContain(`Tunnel connection failed: 403 ${reason}`);
    const decision = { allowed: false, protocol: "connect", host: "evil.example", port: 443, reason };
    expect(refused.network).toEqual([decision]);
    expect(describeCodeResult(refused, 1)).toContain(`Requests were refused:\n${reason}`);
    expect(toJson(refused)).toMatchObject({ network: [decision] });
    expect(decisions).toEqual([
      { allowed: true, protocol: "http", method: "GET", host: "good.example", port, address: "127.0.0.1" },
      decision,
    ]);
  });

  it("leaves no way around the proxy, which a block finds through its variables", async () => {
    await using executor = createExecutor({
      network: policy({ allow: [...packageIndexes] }),
      env: { NO_PROXY: "mine" },
    });
    const code = `
import os, re, socket
names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
print(len({os.environ[name] for name in names}), re.sub(r"\\d+$", "PORT", os.environ["HTTPS_PROXY"]))
print(os.environ["NO_PROXY"], os.environ["no_proxy"], os.environ["NODE_USE_ENV_PROXY"])
print(os.listdir("/sys/class/net"), open("/proc/net/route").read().count("\\n"), "SSL_CERT_FILE" in os.environ)
for address in [("192.0.2.1", 80), ("172.17.0.1", 80), ("8.8.8.8", 53)]:
    print(type(socket.socket().connect_ex(address)), socket.socket().connect_ex(address) != 0)
`;
    expect((await printed(executor, "python", code)).split("\n")).toEqual([
      "1 http://127.0.0.1:PORT",
      "mine localhost,127.0.0.1,::1 1",
      "['lo'] 1 False",
      ...Array.from({ length: 3 }, () => "<class 'int'> True"),
    ]);
    expect(await inspect(executor, ".HostConfig.NetworkMode")).toBe("none");
  });

  it("carries SOCKS, and an answer that comes after the program has closed its side", async () => {
    const port = await playTcp((socket) => {
      const hash = createHash("sha256");
      socket.on("data", (bytes) => hash.update(bytes));
      socket.once("end", () => socket.end(hash.digest("hex")));
    });
    await using executor = createExecutor({ network: policy({ allow: ["hash.example"] }) });
    const code = `
import hashlib, os, socket, struct
relay = socket.create_connection(("127.0.0.1", int(os.environ["ALL_PROXY"].rsplit(":")[-1])))
relay.sendall(b"\\x05\\x01\\x00")
assert relay.recv(2) == b"\\x05\\x00"
relay.sendall(b"\\x05\\x01\\x00\\x03\\x0chash.example" + struct.pack(">H", ${port}))
assert relay.recv(10)[1] == 0
sent = os.urandom(5_000_000)
relay.sendall(sent)
relay.shutdown(socket.SHUT_WR)
print(relay.makefile().read() == hashlib.sha256(sent).hexdigest())
`;
    expect(await printed(executor, "python", code)).toBe("True");
  });

  it("still works in the container that replaces a killed one", async () => {
    const port = await playHost();
    let lost = (): void => {};
    const known = new Promise<void>((resolve) => {
      lost = resolve;
    });
    const network = policy({ allow: ["good.example"] });
    await using executor = createExecutor({ network, onSessionLost: () => lost() });
    const code = fetchProgram(`http://good.example:${port}/`);
    expect(await printed(executor, "python", code)).toContain("GET /");
    await docker("kill", executor.containerName);
    await known;
    expect(await printed(executor, "python", code)).toContain("GET /");
    await executor.restart();
    expect(await printed(executor, "python", code)).toContain("GET /");
  });

  it("is in force by default, if the container is hardened and its image has Python", async () => {
    await using executor = createExecutor();
    const code = `import os\nprint(os.listdir("/sys/class/net"), flush=True)\n${fetchProgram("http://pypi.org/")}`;
    const refused = await run(executor, "python", code);
    // Package indexes are allowed over TLS only.
    expect(refused.output).toMatch(/^\['lo'\]\n.*HTTP Error 403/s);
    expect(refused.network).toMatchObject([{ allowed: false, host: "pypi.org", port: 80 }]);
    expect(await inspect(executor, ".HostConfig.NetworkMode")).toBe("none");
    await using withoutPython = createExecutor({ image: nodeImage });
    expect(await printed(withoutPython, "sh", "ls /sys/class/net; env | grep -ci proxy || true")).toBe("lo\n0");
  });

  it.each<DockerExecutorOptions>([
    { hardened: false },
    { dockerNetwork: "bridge" },
    { extraHosts: { h: "192.0.2.1" } },
    { network: "open" },
  ])("is open with %j", async (options) => {
    await using executor = createExecutor(options);
    expect(await printed(executor, "sh", "ls /sys/class/net; env | grep -ci proxy || true")).toBe("eth0\nlo\n0");
  });

  it("needs Python in the image, and says so; `network: none` does not", async () => {
    const executor = createExecutor({ image: nodeImage, network: policy({ allow: ["good.example"] }) });
    await expect(executor.start()).rejects.toThrow(
      'A network policy needs Python in the container, and this one has none. Use an image that has Python 3.8 or later, or set `network` to "none" or "open".',
    );
    expect(await docker("ps", "--all", "--quiet", "--filter", `name=${executor.containerName}`)).toBe("");
    await using closed = createExecutor({ image: nodeImage, network: "none" });
    expect(await printed(closed, "sh", "ls /sys/class/net")).toBe("lo");
  });

  it("is rejected if a reused container has a network", async () => {
    const containerName = `fenced-test-${process.pid}-network`;
    onTestFinished(async () => void (await docker("rm", "--force", containerName)));
    await docker("run", "--detach", "--name", containerName, pythonImage, "sleep", "1000");
    const start = createExecutor({ containerName, reuse: true, network: policy({ allow: [] }) }).start();
    await expect(start).rejects.toThrow(/has a network \((?:default|bridge)\), so a network policy cannot be enforced/);
    for (const network of ["open", undefined] as const) {
      await using open = createExecutor({ containerName, reuse: true, ...(network && { network }) });
      expect(await printed(open, "sh", "ls /sys/class/net; env | grep -ci proxy || true")).toBe("eth0\nlo\n0");
    }
  });
});

describe("hostile code", { ...needs("docker"), timeout: 120_000 }, () => {
  it("gets 200 connections at a time, is told why not more, and can open new ones later", async () => {
    const port = await playHost();
    await using executor = createExecutor({ network: policy({ allow: ["good.example"] }) });
    const code = `
import os, select, socket
port = int(os.environ["ALL_PROXY"].rsplit(":")[-1])
def connect():
    try:
        return socket.create_connection(("127.0.0.1", port))
    except ConnectionError:
        # It was refused before this program ran on.
        return None
waiting, answers = {connect() for _ in range(400)} - {None}, set()
while len(waiting) > 200:
    for each in select.select(list(waiting), [], [])[0]:
        try:
            answers.add(each.recv(1000).split(b"\\r\\n")[0])
        except ConnectionError:
            pass
        waiting.remove(each)
print(len(waiting), select.select(list(waiting), [], [], 0)[0], b"HTTP/1.1 503 too many connections: the limit is 200" in answers)
`;
    expect(await printed(executor, "python", code)).toBe("200 [] True");
    const again = fetchProgram(`http://good.example:${port}/`);
    await expect.poll(async () => (await run(executor, "python", again)).exitCode, { timeout: 60_000 }).toBe(0);
  });

  it("that does not read makes only the host that it called wait", async () => {
    let written = 0;
    const endless = await playTcp((socket) => {
      const piece = Buffer.alloc(65_536);
      const more = (): void => {
        while (!socket.destroyed && socket.write(piece)) written += piece.length;
      };
      socket.on("drain", more);
      more();
    });
    const port = await playHost();
    await using executor = createExecutor({ network: policy({ allow: ["good.example"] }) });
    const code = `
import os, socket, sys, time
relay = int(os.environ["ALL_PROXY"].rsplit(":")[-1])
def ask(port):
    made = socket.create_connection(("127.0.0.1", relay))
    made.sendall(b"CONNECT good.example:%d HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" % port)
    return made
unread = [ask(${endless}) for _ in range(40)]
import urllib.request
print(urllib.request.urlopen("http://good.example:${port}/").status, flush=True)
time.sleep(1000)
`;
    const stop = new AbortController();
    const events = executor.streamCodeBlocks([{ language: "python", code }], { signal: stop.signal });
    let said = "";
    const ended = (async () => {
      for await (const event of events) if (event.type === "stdout") said += event.text;
    })();
    let before = -1;
    await expect
      .poll(
        () => {
          const still = written === before && written > 0;
          before = written;
          return still;
        },
        { interval: 500, timeout: 60_000 },
      )
      .toBe(true);
    await expect.poll(() => said).toBe("200\n");
    // TCP windows and the kernel's buffers hold this much of the endless streams.
    expect(written).toBeLessThan(40 * 12_000_000);
    stop.abort();
    await expect(ended).rejects.toThrow(/abort/i);
    expect(await printed(executor, "python", fetchProgram(`http://good.example:${port}/`))).toContain("GET /");
  });
});

describe("network options", () => {
  const make = (options: object) => () => Reflect.construct(DockerCommandLineCodeExecutor, [options]) as unknown;

  it("are checked", () => {
    expect(make({ network: "bridge" })).toThrow(
      '"network" is "bridge". It must be "none", "open" or `{ allow: [hosts] }`; for a network of the daemon, use `dockerNetwork`.',
    );
    expect(make({ network: { allow: ["https://x"] } })).toThrow('"network.allow[0]"');
    expect(make({ network: { allowed: ["x"] } })).toThrow(/unknown option "network.allowed"/);
    expect(make({ dockerNetwork: "none" })).toThrow('"dockerNetwork" is not valid.');
    expect(make({ dockerNetwork: "mine", network: "none" })).toThrow('It needs `network: "open"`');
    expect(make({ dockerNetwork: "mine", network: { allow: [] } })).toThrow('It needs `network: "open"`');
    expect(make({ dockerNetwork: "mine", network: "open" })).not.toThrow();
  });

  it("dockerNetwork sets the container's network mode", needs("docker"), async () => {
    await using executor = createExecutor({ dockerNetwork: "bridge" });
    await executor.start();
    expect(await inspect(executor, ".HostConfig.NetworkMode")).toBe("bridge");
  });
});
