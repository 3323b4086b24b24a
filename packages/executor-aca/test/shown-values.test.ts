import { jupyterPythons, needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { run, Setting } from "./support.ts";

const pumped = { transport: "pump" } as const;

describe("values and displays of blocks", needs("python3"), () => {
  it.each(["pump", "request"] as const)("keep the digits of their numbers (%s)", async (transport) => {
    await using setting = await Setting.open();
    const executor = setting.executor({ transport });
    const shown = async (code: string) => (await run(executor, code)).output;
    expect(await shown("2**64")).toBe("18446744073709551616\n");
    expect(await shown("12345678901234567")).toBe("12345678901234567\n");
    expect(await shown("1.0")).toBe("1.0\n");
    expect(await shown("1e22")).toBe("1e+22\n");
    expect((await shown("[2**64, 1.0, 0.5]")).replaceAll(" ", "")).toBe("[18446744073709551616,1.0,0.5]\n");
    expect(await shown("{'a': 2**63, 'b': '2.0'}")).toBe("{'a': 9223372036854775808, 'b': '2.0'}\n");
    expect(await shown("'\\ue0001.0'")).toContain("1.0");
  });

  it("become text that can be read, or a name, in order", async () => {
    await using setting = await Setting.open();
    const code = `from IPython.display import HTML, Markdown, display
print("before")
display(Markdown("The mean is **4.2**"))
print("between")
display(HTML("<table><tr><td>Oslo</td><td>7</td></tr></table>"))
display({"application/vnd.plotly.v1+json": {"data": [], "x": float("nan")}}, raw=True)
display({"application/vnd.plotly.v1+json": {"data": []}}, raw=True)
class Table:
    def _repr_html_(self): return "<p>Bergen</p>"
Table()`;
    const { output, displays } = await run(setting.executor(pumped), code);
    expect(output).toBe("before\nThe mean is **4.2**\nbetween\nOslo | 7\n[Plotly plot]\nBergen\n");
    expect(displays[0]?.data["text/markdown"]).toBe("The mean is **4.2**");
  });
});

describe("figures of a block", needs("jupyter"), () => {
  it("all arrive", { timeout: 120_000 }, async () => {
    await using setting = await Setting.open({ python: jupyterPythons.jupyter });
    const code = `import matplotlib.pyplot as plt
for n in range(3):
    plt.figure(); plt.plot([n, 1])
"the value"`;
    const { output, displays } = await run(setting.executor(pumped), code);
    expect(displays.filter(({ data }) => data["image/png"] instanceof Uint8Array)).toHaveLength(3);
    expect(output).toContain("'the value'\n");
  });
});
