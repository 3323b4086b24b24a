import { type CodeExecutor, describeCodeExecutor } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { WasmCodeExecutor } from "@fenced/executor-wasm";
import { needs } from "@fenced/test-support";
import { describe, expect, it, vi } from "vitest";

vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);

/** What a model is told about a started executor. */
async function described(executor: CodeExecutor): Promise<string> {
  try {
    await executor.start();
    return describeCodeExecutor(executor);
  } finally {
    await executor.stop();
  }
}

const cutOff = "The code has no network access: it cannot download or install anything.";
const image = "fenced-test:python";

describe("a model is told what the network reaches and what is installed", () => {
  it("in WebAssembly", async () => {
    const text = await described(new WasmCodeExecutor());
    expect(text).toContain(cutOff);
    expect(text).toContain("Python has only its standard library.");
  });

  it("on this machine", needs("python3"), async () => {
    expect(await described(new LocalCommandLineCodeExecutor())).toContain("The code has network access.");
  });

  it("in an OS sandbox", needs("bubblewrap", "python3"), async () => {
    expect(await described(new LocalCommandLineCodeExecutor({ isolation: "os-sandbox" }))).toContain(cutOff);
    const network = { allow: ["pypi.org:443", "files.pythonhosted.org:443"] };
    const listed = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", network });
    const reaches = "The code's network reaches only pypi.org:443, files.pythonhosted.org:443.";
    expect(await described(listed)).toContain(reaches);
    const changing = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", network: { allow: () => [] } });
    expect(await described(changing)).not.toContain("network");
  });

  it("in a container", needs("docker"), async () => {
    const none = await described(new DockerCommandLineCodeExecutor({ image, network: "none" }));
    expect(none).toContain(cutOff);
    expect(none).toMatch(/Installed Python packages: |Python has only its standard library\./);
    const byDefault = await described(new DockerCommandLineCodeExecutor({ image }));
    expect(byDefault).toContain("The code's network reaches only pypi.org");
    // Without Python, nothing carries connections to the listed hosts.
    expect(await described(new DockerCommandLineCodeExecutor({ image: "fenced-test:node" }))).toContain(cutOff);
  });

  it("with the names of packages", needs("docker"), async () => {
    await using executor = new DockerCommandLineCodeExecutor({ image, network: "none" });
    const code = "import importlib.metadata as m; print(*{d.metadata['Name'] for d in m.distributions()})";
    const { output } = await executor.executeCodeBlocks([{ language: "python", code }]);
    const installed = new Set(output.trim().split(" "));
    const told = executor.capabilities.packages ?? ["nothing was told"];
    expect(told.filter((name) => ![...installed].some((each) => each.replaceAll("-", "_") === name))).toEqual([]);
  });
});
