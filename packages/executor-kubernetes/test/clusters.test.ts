import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import path from "node:path";
import { promisify } from "node:util";
import { connectExecutor } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { afterEach, describe, expect, it, vi } from "vitest";
import { KubernetesCommandLineCodeExecutor } from "../src/index.ts";
import { createExecutor, image, jobsWith, namespace, podsWith, printed } from "./support/cluster.ts";
import { FaultProxy } from "./support/fault-proxy.ts";
import { hostCommand } from "./support/host-command.ts";
import {
  clusterParts,
  KubeconfigFiles,
  kubeconfigOf,
  role,
  ServiceAccount,
  testCluster,
} from "./support/kubeconfig-files.ts";
import { ownCluster } from "./support/node.ts";

async function startFailure(executor: KubernetesCommandLineCodeExecutor): Promise<string> {
  const error: unknown = await executor.start().catch((thrown: unknown) => thrown);
  if (error instanceof Error) return error.message;
  throw new Error("it started");
}

afterEach(() => vi.unstubAllEnvs());

describe("a cluster is found", needs("kubernetes"), () => {
  it("in several KUBECONFIG files, with an exec plugin, once the Role that the error prints is granted", async () => {
    await using files = await KubeconfigFiles.make();
    await using account = await ServiceAccount.make();
    const credential = {
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status: { token: account.token },
    };
    await files.write(
      "plugin",
      `#!/bin/sh\n[ "$1$GREETING" = tokenhello ] && cat <<END\n${JSON.stringify(credential)}\nEND\n`,
      0o700,
    );
    const plugin = {
      apiVersion: credential.apiVersion,
      command: "./plugin",
      args: ["token"],
      env: [{ name: "GREETING", value: "hello" }],
    };
    const contexts = [{ name: "own", context: { cluster: "here", user: "me", namespace } }];
    const first = await files.write("first", { contexts, users: [{ name: "me", user: { exec: plugin } }] });
    const { cluster } = testCluster();
    const second = await files.write("second", {
      "current-context": "own",
      clusters: [{ name: "here", cluster }],
      users: [{ name: "me", user: { token: "of the second file, which does not count" } }],
    });
    vi.stubEnv("KUBECONFIG", [first, path.join(files.directory, "none"), second].join(path.delimiter));
    await using executor = new KubernetesCommandLineCodeExecutor({ image });

    const refused = await startFailure(executor);
    expect(refused).toContain(
      `system:serviceaccount:${namespace}:${account.name} is not allowed to create pods in the namespace ${namespace}`,
    );
    await account.grant(refused.slice(refused.indexOf("apiVersion:")));
    await expect.poll(() => printed(executor, "print('allowed')").catch(String), { timeout: 60_000 }).toBe("allowed");
  });

  it("without the right to exec: the error names it and its Role, and no pod is left", async () => {
    await using files = await KubeconfigFiles.make();
    await using account = await ServiceAccount.make();
    await account.grant(role.replace(/.*pods\/exec.*\n/, ""));
    const kubeconfig = await files.write("account", kubeconfigOf({ ...testCluster(), user: { token: account.token } }));
    const label = randomUUID();
    const refused = await startFailure(createExecutor({ kubeconfig, labels: { "fenced-test": label } }));
    expect(refused).toMatch(
      /not allowed to (get|create) pods\/exec in the namespace default[^]*resources: \[pods\/exec\]/,
    );
    expect(await podsWith(`fenced-test=${label}`)).toEqual([]);
  });

  it("without the right to create Jobs, which keepAliveMs needs: the Role that the error prints is enough", async () => {
    await using files = await KubeconfigFiles.make();
    await using account = await ServiceAccount.make();
    await using other = await ServiceAccount.make();
    await account.grant(role);
    const kubeconfig = await files.write("account", kubeconfigOf({ ...testCluster(), user: { token: account.token } }));
    const refused = await startFailure(createExecutor({ kubeconfig, keepAliveMs: 60_000 }));
    expect(refused).toMatch(/not allowed to create jobs in the namespace default/);
    await other.grant(refused.slice(refused.indexOf("apiVersion")));
    const granted = await files.write("other", kubeconfigOf({ ...testCluster(), user: { token: other.token } }));
    const label = randomUUID();
    const executor = createExecutor({
      kubeconfig: granted,
      keepAliveMs: 60_000,
      labels: { "fenced-test": label },
    });
    expect(await printed(executor, "print('kept')")).toBe("kept");
    const { handle } = executor;
    await executor.detach();
    if (!handle) throw new Error("There is no handle.");
    const again = await connectExecutor(handle, { importModule: () => import("../src/index.ts") });
    expect((await again.executeCodeBlocks([{ language: "sh", code: "echo again" }])).output).toBe("again\n");
    await again.stop();
    expect(await jobsWith(`fenced-test=${label}`)).toEqual([]);
  });

  it("with a client certificate at a path relative to the kubeconfig", async ({ skip }) => {
    const own = ownCluster ?? skip("the tests have no client certificate for another cluster");
    await using files = await KubeconfigFiles.make();
    const place = path.relative(files.directory, own);
    const user = { "client-certificate": `${place}/server.crt`, "client-key": `${place}/server.key` };
    const kubeconfig = await files.write("certificate", kubeconfigOf({ ...testCluster(), user }));
    await using executor = createExecutor({ kubeconfig });
    expect(await printed(executor, "print('known')")).toBe("known");
  });

  it("from inside a pod, with its service account", needs("root"), async () => {
    await using files = await KubeconfigFiles.make();
    await using account = await ServiceAccount.make();
    const { cluster } = testCluster();
    const { server, authority } = clusterParts(cluster);
    await account.grant(role);
    await files.write("token", account.token);
    await files.write("namespace", namespace);
    await files.write("ca.crt", authority);
    // In its own mount namespace, this program sees there what a pod sees.
    const place = "/run/secrets/kubernetes.io/serviceaccount";
    const script = `mount -t tmpfs none /run && mkdir -p ${place} && cp "$1/token" "$1/namespace" "$1/ca.crt" ${place} && shift && exec "$@"`;
    const host = hostCommand("mortal-host.ts", image, "", "stop");
    const { stdout } = await promisify(execFile)(
      "unshare",
      ["--mount", "sh", "-c", script, "fenced", files.directory, ...host],
      {
        env: {
          ...process.env,
          KUBECONFIG: path.join(files.directory, "none"),
          KUBERNETES_SERVICE_HOST: server.hostname,
          KUBERNETES_SERVICE_PORT: server.port,
        },
      },
    );
    expect(stdout).toMatch(/^fenced-\S+ ran\n$/);
  });

  it("behind the proxy that the kubeconfig names", async () => {
    await using proxy = await FaultProxy.start();
    await using files = await KubeconfigFiles.make();
    const kubeconfig = await files.write("proxied", kubeconfigOf(testCluster({ "proxy-url": proxy.url })));
    await using executor = createExecutor({ kubeconfig });
    expect(await printed(executor, "print('through')")).toBe("through");
    expect(proxy.connections).toBeGreaterThan(0);
  });
});

describe("an error explains why a cluster cannot be used:", () => {
  it("a missing, broken or unsupported kubeconfig, context or plugin", async () => {
    await using files = await KubeconfigFiles.make();
    vi.stubEnv("HOME", files.directory);
    vi.stubEnv("KUBECONFIG", path.join(files.directory, "none"));
    vi.stubEnv("KUBERNETES_SERVICE_HOST", "");
    const failure = (options = {}) => startFailure(new KubernetesCommandLineCodeExecutor(options));
    expect(await failure()).toMatch(/no kubeconfig.*Set KUBECONFIG/s);
    expect(await failure({ kubeconfig: "/none" })).toMatch(/no kubeconfig file \/none/);
    expect(await failure({ kubeconfig: await files.write("broken", "a: [") })).toMatch(/broken could not be read/);
    expect(await failure({ kubeconfig: await files.write("wrong", { clusters: 5 }) })).toMatch(
      /not a kubeconfig file: clusters/,
    );
    const cluster = { server: "https://127.0.0.1:1" };
    const of = (user: object, settings = {}) => kubeconfigOf({ cluster: { ...cluster, ...settings }, user });
    const plain = await files.write("plain", of({}));
    expect(await failure({ kubeconfig: plain, context: "tset" })).toMatch(/no context "tset".*these contexts: test/s);
    expect(await failure({ kubeconfig: await files.write("old", of({ "auth-provider": { name: "oidc" } })) })).toMatch(
      /auth-provider.*not supported/,
    );
    expect(
      await failure({ kubeconfig: await files.write("socks", of({}, { "proxy-url": "socks5://127.0.0.1" })) }),
    ).toMatch(/SOCKS is not supported/);
    const gone = {
      exec: { apiVersion: "client.authentication.k8s.io/v1", command: "fenced-none", installHint: "Install it." },
    };
    expect(await failure({ kubeconfig: await files.write("gone", of(gone)) })).toMatch(
      /fenced-none.*ENOENT.*Install it\./s,
    );
  });

  it("a server that cannot be reached", async () => {
    await using files = await KubeconfigFiles.make();
    const kubeconfig = await files.write(
      "nowhere",
      kubeconfigOf({ cluster: { server: "https://127.0.0.1:1" }, user: {} }),
    );
    const said = await startFailure(new KubernetesCommandLineCodeExecutor({ kubeconfig }));
    expect(said).toMatch(/127\.0\.0\.1:1 \(context test\) could not be reached: .*ECONNREFUSED.*kubectl get pods/s);
  });

  it("credentials that the server rejects", needs("kubernetes"), async () => {
    await using files = await KubeconfigFiles.make();
    const kubeconfig = await files.write("stranger", kubeconfigOf({ ...testCluster(), user: { token: "wrong" } }));
    expect(await startFailure(createExecutor({ kubeconfig }))).toMatch(/rejected the credentials of context test/);
  });
});
