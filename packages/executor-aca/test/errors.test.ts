import type { EmulatorOptions, Fault } from "@fenced/aca-emulator";
import {
  BackendUnavailableError,
  FileNotFoundError,
  FunctionSetupError,
  InvalidInputError,
  withRequirements,
} from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { ACADynamicSessionsCodeExecutor, staticToken, type ACAExecutorOptions } from "../src/index.ts";
import { run, Setting } from "./support.ts";

/** The error with which `start()` rejects. */
async function startError(
  options: Partial<ACAExecutorOptions> & { emulator?: EmulatorOptions; fault?: Fault } = {},
): Promise<unknown> {
  const { emulator, fault, ...rest } = options;
  await using setting = await Setting.open(emulator);
  if (fault) setting.emulator.provoke(fault);
  const executor = setting.executor({ retryForMs: 0, ...rest });
  return await executor.start().then(
    () => undefined,
    (error: unknown) => error,
  );
}

function unavailable(error: unknown): string {
  expect(error).toSatisfy(BackendUnavailableError.isInstance);
  return String(error);
}

it("the error for keepAliveMs says why it is not possible, and what to do instead", () => {
  const create = (keepAliveMs: number) => {
    const options = { poolManagementEndpoint: "http://127.0.0.1:1", keepAliveMs };
    return new ACADynamicSessionsCodeExecutor(options);
  };
  expect(() => create(1000)).toThrow(/keepAliveMs.*not possible in a session pool.*checkpoints.*`keepSession`/s);
  expect(create(0).capabilities.keepAlive).toBeUndefined();
});

describe("the error", needs("python3"), () => {
  it("for a token of another audience names the scope", async () => {
    await using setting = await Setting.open();
    const token = setting.emulator.token({ audience: "https://management.azure.com" });
    const executor = setting.executor({ credential: staticToken(token) });
    const error = await executor.start().catch((thrown: unknown) => thrown);
    expect(unavailable(error)).toMatch(/another audience.*https:\/\/dynamicsessions\.io\/\.default/s);
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain(token);
  });

  it("for an expired token says so", async () => {
    expect(unavailable(await startError({ fault: { kind: "expired-token" } }))).toMatch(/expired/);
  });

  it("for a wrong URL names poolManagementEndpoint", async () => {
    await using setting = await Setting.open();
    const poolManagementEndpoint = new URL("/elsewhere", setting.emulator.endpoint).href;
    const error = await setting
      .executor({ poolManagementEndpoint })
      .start()
      .catch((thrown: unknown) => thrown);
    expect(unavailable(error)).toMatch(/poolManagementEndpoint/);
  });

  it("for a caller without the role names the role", async () => {
    expect(unavailable(await startError({ fault: { kind: "forbidden" } }))).toMatch(
      /Azure ContainerApps Session Executor/,
    );
  });

  it("for a full pool says how to get room", async () => {
    await using setting = await Setting.open({ maxSessions: 1 });
    await setting.executor().start();
    const error = await setting
      .executor({ retryForMs: 0 })
      .start()
      .catch((thrown: unknown) => thrown);
    expect(unavailable(error)).toMatch(/pool is full.*maximum of concurrent sessions/s);
  });

  it("for a full pool does not occur if a session ends in time", async () => {
    await using setting = await Setting.open({ maxSessions: 1 });
    const first = setting.executor();
    await first.start();
    const second = setting.executor().start();
    await first.stop();
    await expect(second).resolves.toBeUndefined();
  });

  it("for an unknown API version names it", async () => {
    expect(unavailable(await startError({ apiVersion: "2020-01-01" }))).toMatch(/UnsupportedApiVersion.*2020-01-01/s);
  });

  it("for an unreachable service says that it did not answer", async () => {
    const executor = new ACADynamicSessionsCodeExecutor({
      poolManagementEndpoint: "http://127.0.0.1:9/pool",
      credential: staticToken("secret-token"),
      retryForMs: 0,
    });
    const error = await executor.start().catch((thrown: unknown) => thrown);
    expect(unavailable(error)).toMatch(/did not answer/);
    await executor.stop();
  });

  it.for<Fault>([{ kind: "server-error" }, { kind: "server-error", status: 502 }, { kind: "drop" }])(
    "for failing executions is thrown after retryForMs, with pauses between the attempts (%o)",
    async (fault) => {
      await using setting = await Setting.open();
      let calls = 0;
      const getToken = async () => {
        calls += 1;
        return { token: setting.emulator.token() };
      };
      const executor = setting.executor({ retryForMs: 1000, credential: { getToken } });
      setting.emulator.provoke({ ...fault, on: "executions" });
      await expect(executor.start()).rejects.toSatisfy(BackendUnavailableError.isInstance);
      expect(calls).toBeLessThan(30);
      setting.emulator.setFaults([]);
      await executor.start();
      setting.emulator.provoke({ ...fault, on: "executions", skip: 1 });
      calls = 0;
      const block = run(executor, "print(1)", { timeoutMs: Infinity });
      await expect(block).rejects.toSatisfy(BackendUnavailableError.isInstance);
      expect(calls).toBeLessThan(30);
      setting.emulator.setFaults([]);
      expect(await run(executor, "print(2)")).toMatchObject({ output: "2\n", stateLost: false });
    },
  );

  it("for a file of more than 128 MB is an InvalidInputError", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await expect(executor.files.write("large.bin", new Uint8Array(128 * 1024 * 1024 + 1))).rejects.toSatisfy((error) =>
      InvalidInputError.isInstance(error),
    );
  });

  it("for a missing file is a FileNotFoundError", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await expect(executor.downloadFiles(["no.txt"])).rejects.toSatisfy(FileNotFoundError.isInstance);
    await expect(executor.uploadFiles(["/no/such/file"])).rejects.toSatisfy(FileNotFoundError.isInstance);
  });
});

describe("options", () => {
  it.for<[string, Partial<ACAExecutorOptions>]>([
    ["an invalid URL", { poolManagementEndpoint: "nowhere" }],
    ["a token over plain HTTP", { poolManagementEndpoint: "http://example.com/pool" }],
    ["a session id of 3 characters", { sessionId: "abc" }],
    ["a session id of 129 characters", { sessionId: "a".repeat(129) }],
    ["two sources of tokens", { credential: staticToken("a"), tokenVariable: "B" }],
    ["a negative retryForMs", { retryForMs: -1 }],
    ["a misspelt option", Object.assign({ retryForMs: 1 }, { retryMs: 1 })],
  ])("reject %s", ([, options]) => {
    const make = () =>
      new ACADynamicSessionsCodeExecutor({ poolManagementEndpoint: "https://x.dynamicsessions.io/p", ...options });
    expect(make).toThrow(expect.toSatisfy((error: unknown) => InvalidInputError.isInstance(error)));
  });

  it("can be dumped without a credential, but not with one", () => {
    const options = { poolManagementEndpoint: "https://x.dynamicsessions.io/p", tokenVariable: "MY_TOKEN" };
    expect(new ACADynamicSessionsCodeExecutor(options).dumpComponent().config).toEqual(options);
    const { tokenVariable: _, ...secret } = { ...options, credential: staticToken("s") };
    const withSecret = new ACADynamicSessionsCodeExecutor(secret);
    expect(() => withSecret.dumpComponent()).toThrow(/credential is a secret/);
  });
});

describe("tokens", needs("python3"), () => {
  it("are requested at each call, for the service's scope", async () => {
    await using setting = await Setting.open();
    const scopes: string[] = [];
    const credential = {
      getToken: async (scope: string) => {
        scopes.push(scope);
        return { token: setting.emulator.token() };
      },
    };
    const executor = setting.executor({ credential });
    await executor.start();
    const before = scopes.length;
    await run(executor, "1");
    expect(scopes.length).toBeGreaterThan(before);
    expect(new Set(scopes)).toEqual(new Set(["https://dynamicsessions.io/.default"]));
  });

  it("are read from an environment variable at the time of the call", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ tokenVariable: "FENCED_ACA_TEST_TOKEN" });
    await expect(executor.start()).rejects.toThrow(/FENCED_ACA_TEST_TOKEN does not contain a token/);
    process.env.FENCED_ACA_TEST_TOKEN = setting.emulator.token();
    try {
      expect(await run(executor, "print(1)")).toMatchObject({ output: "1\n" });
      await executor.stop();
    } finally {
      delete process.env.FENCED_ACA_TEST_TOKEN;
    }
  });

  it("that a credential cannot provide cause an error that says so", async () => {
    const failing = { getToken: () => Promise.reject(new Error("not signed in")) };
    expect(unavailable(await startError({ credential: failing }))).toMatch(/returned no token: not signed in/);
    expect(unavailable(await startError({ credential: { getToken: async () => null } }))).toMatch(/returned no token/);
  });
});

describe("packages that functions need", needs("python3"), () => {
  it("are named in the error if the session lacks them, with similar names", async () => {
    await using setting = await Setting.open({ packages: ["numpy", "pandas", "scikit-learn"] });
    const load = withRequirements({ pythonPackages: ["panda>=2"] })("def load():\n    return 1\n");
    const executor = setting.executor({ functions: [load] });
    const error = await run(executor, "1").catch((thrown: unknown) => thrown);
    expect(error).toSatisfy(FunctionSetupError.isInstance);
    expect(String(error)).toMatch(/"panda".*Did you mean pandas/s);
    expect(await executor.getAvailablePackages()).toEqual(["numpy", "pandas", "scikit-learn"]);
  });
});
