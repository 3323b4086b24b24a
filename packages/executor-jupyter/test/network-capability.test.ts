import { describeCodeExecutor } from "@fenced/core";
import {
  DockerJupyterServer,
  JupyterCodeExecutor,
  type JupyterExecutorOptions,
  LocalJupyterServer,
} from "@fenced/executor-jupyter";
import { expect, it } from "vitest";

const cases: readonly [what: string, JupyterExecutorOptions["server"], network: unknown, sentence: string][] = [
  ["a local server", new LocalJupyterServer(), "open", "The code has network access."],
  [
    "a container",
    new DockerJupyterServer(),
    expect.arrayContaining(["pypi.org:443"]),
    "The code's network reaches only pypi.org:443",
  ],
  ["one without", new DockerJupyterServer({ network: "none" }), "none", "The code has no network access"],
  ["a policy", new DockerJupyterServer({ network: { allow: ["a.test"] } }), ["a.test"], "reaches only a.test."],
  ["one that changes", new DockerJupyterServer({ network: { allow: () => [] } }), undefined, "Variables survive"],
  ["a remote server", { baseUrl: "https://hub.test/user/me", token: "t" }, undefined, "Variables survive"],
];

it.each(cases)("the network of kernels is known before the start: %s", (_, server, network, sentence) => {
  const executor = new JupyterCodeExecutor({ server });
  expect(executor.capabilities.network).toEqual(network);
  const said = describeCodeExecutor(executor);
  expect(said).toContain(sentence);
  expect(said.includes("network")).toBe(network !== undefined);
});
