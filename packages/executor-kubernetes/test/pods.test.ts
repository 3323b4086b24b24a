import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { needs, testKubeconfig } from "@fenced/test-support";
import { describe, it } from "vitest";
import { ask, createExecutor, image, namespace, phaseOf, printed, readPod } from "./support/cluster.ts";
import { hostCommand } from "./support/host-command.ts";

const look = `
import json, os
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines() if ":" in line)
def writable(place):
    try:
        open(place + "/probe", "w").close()
        return True
    except OSError:
        return False
print(json.dumps({
    "uid": os.getuid(), "gid": os.getgid(), "cwd": os.getcwd(), "capabilities": int(status["CapBnd"], 16),
    "noNewPrivileges": status["NoNewPrivs"].strip(), "root": writable("/"), "home": writable(os.path.expanduser("~")),
    "last words": os.access("/dev/termination-log", os.W_OK) or os.access("/root/.fenced-end", os.W_OK),
    "workspace": writable("."), "tmp": writable("/tmp"), "token": os.path.exists("/var/run/secrets/kubernetes.io"),
    "setting": os.environ.get("SETTING"),
}))`;

describe.concurrent("a pod", needs("kubernetes"), () => {
  it("is hardened: no root, no capabilities, no token, and only its own places are writable", async ({ expect }) => {
    await using executor = createExecutor();
    expect(JSON.parse(await printed(executor, look))).toEqual({
      uid: 65_532,
      gid: 65_532,
      cwd: "/workspace",
      capabilities: 0,
      noNewPrivileges: "1",
      root: false,
      "last words": false,
      home: true,
      workspace: true,
      tmp: true,
      token: false,
      setting: null,
    });
    const { spec } = await readPod(executor.podName ?? "");
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      restartPolicy: "Never",
      activeDeadlineSeconds: 86_400,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
      containers: [{ resources: { limits: { cpu: "1", memory: "1Gi" } } }],
    });
  });

  it("has room in /dev/shm, a user with a name, and packages that the same block can import", async ({ expect }) => {
    await using executor = createExecutor();
    const code = `import getpass, os, site, sys
print(os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize > 67108864, getpass.getuser())
print(site.getusersitepackages() in sys.path, os.environ["PIP_BREAK_SYSTEM_PACKAGES"])`;
    expect(await printed(executor, code)).toBe("True sandbox\nTrue 1");
  });

  it("combines its template with the rest of the hardening", async ({ expect }) => {
    await using executor = createExecutor({
      labels: { tenant: "42" },
      activeDeadlineSeconds: 600,
      imagePullPolicy: "IfNotPresent",
      resources: { limits: { memory: "256Mi" } },
      podTemplate: {
        metadata: { annotations: { "example.com/reason": "test" }, labels: { tier: "code" } },
        spec: {
          nodeSelector: { "kubernetes.io/os": "linux" },
          securityContext: { runAsUser: 1234 },
          containers: [
            {
              name: "code",
              env: [{ name: "SETTING", value: "templated" }],
              volumeMounts: [{ name: "more", mountPath: "/more" }],
            },
          ],
          volumes: [{ name: "more", emptyDir: {} }],
        },
      },
    });
    expect(JSON.parse(await printed(executor, look))).toMatchObject({
      uid: 1234,
      root: false,
      setting: "templated",
      workspace: true,
    });
    expect(await printed(executor, "ls -d /more", "sh")).toBe("/more");
    const { metadata, spec } = await readPod(executor.podName ?? "");
    expect(metadata.labels).toMatchObject({ tenant: "42", tier: "code", "app.kubernetes.io/managed-by": "fenced" });
    expect(spec).toMatchObject({ activeDeadlineSeconds: 600, nodeSelector: { "kubernetes.io/os": "linux" } });
  });

  it("keeps an interpreter waiting with `warm`", async ({ expect }) => {
    await using executor = createExecutor({ warm: { preload: ["json", "fenced_none"] } });
    const code = "import sys\nprint('json' in sys.modules, __name__, sys.argv[0][-3:])";
    await expect.poll(() => printed(executor, code), { timeout: 60_000 }).toBe("True __main__ .py");
  });

  it("stores files of many pieces completely, and returns parts of them", async ({ expect }) => {
    await using executor = createExecutor();
    const size = 9_000_001;
    const content = Buffer.alloc(size, "0123456789");
    await executor.files.write("large/file.bin", content);
    expect(await executor.files.stat("large/file.bin")).toMatchObject({ type: "file", size });
    const part = await new Response(
      executor.files.readStream("large/file.bin", { start: 8_999_995, end: 9_000_000 }),
    ).text();
    expect(part).toBe("567890");
    expect(Buffer.compare(await executor.files.read("large/file.bin"), content)).toBe(0);
    expect(await executor.files.list()).toEqual([{ path: "large/file.bin", size }]);
  });

  it("ends when its host program is killed, and the next program removes what is left", async ({ expect }) => {
    const [program, ...words] = hostCommand("mortal-host.ts", image, testKubeconfig);
    const host = spawn(program, words, { stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    host.stdout.on("data", (bytes: Buffer) => (said += bytes.toString()));
    await expect.poll(() => said, { timeout: 60_000 }).toMatch(/ ran\n/);
    const [name = ""] = said.split(" ");
    host.kill("SIGKILL");
    await once(host, "close");
    // Another test's executor may remove it at once.
    await expect.poll(() => phaseOf(name), { timeout: 90_000 }).toMatch(/Succeeded|gone/);
    // A pod that no node accepts, and that nobody waits for any more.
    const lost = `fenced-test-${randomUUID()}`;
    await ask("POST", `/api/v1/namespaces/${namespace}/pods`, {
      metadata: {
        name: lost,
        labels: { "app.kubernetes.io/managed-by": "fenced" },
        // Times are in whole seconds, so it may have the same one as the next.
        annotations: { "fenced.dev/start-timeout-ms": "-61000" },
      },
      spec: { containers: [{ name: "code", image }], nodeSelector: { "fenced-test": "none" } },
    });
    const next = spawn(program, [...words, "stop"], { stdio: ["ignore", "ignore", "inherit"] });
    expect(await once(next, "close")).toEqual([0, null]);
    for (const left of [name, lost]) await expect.poll(() => phaseOf(left), { timeout: 60_000 }).toBe("gone");
  }, 240_000);
});
