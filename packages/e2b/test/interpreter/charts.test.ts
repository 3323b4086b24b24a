import { Sandbox } from "@e2b/code-interpreter";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { needs } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "../support/start-server.ts";

describe("the code interpreter in an image with pandas and matplotlib", needs("docker", "analysisImage"), () => {
  let server: TestServer;
  let sandbox: Sandbox;
  beforeAll(async () => {
    const image = "fenced-test:analysis";
    const create = (): DockerCommandLineCodeExecutor =>
      new DockerCommandLineCodeExecutor({ image, workspacePath: "/home/user" });
    server = await startServer({ templates: { base: create } });
    sandbox = await Sandbox.create("base", server.client);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it("sends the data of tables", async () => {
    const code = `import pandas
table = pandas.DataFrame({"n": [1, 2], "x": [0.5, None], "when": pandas.to_datetime(["2026-01-02", None])})
table`;
    const [table] = (await sandbox.runCode(code)).results;
    expect(table?.data).toEqual({ n: [1, 2], x: [0.5, null], when: ["2026-01-02T00:00:00", null] });
    expect(table?.html).toMatch(/<table/);
    const large = await sandbox.runCode("pandas.DataFrame({'n': range(200_001)})");
    expect(large.results[0]).toMatchObject({ data: undefined, html: expect.stringMatching(/<table/) });
  });

  it("shows figures with their data", async () => {
    const code = `import matplotlib.pyplot as plt, datetime
def shown(draw, columns=1):
    figure, axes = plt.subplots(1, columns)
    draw(axes)
    plt.show()
days = [datetime.date(2026, 1, day) for day in (1, 2)]
shown(lambda axes: (axes.plot(days, [1, float("nan")], label="a"), axes.axhline(1), axes.set_ylabel("speed (m/s)")))
shown(lambda axes: (axes.scatter([1, 2], [10, 100]), axes.set_yscale("log"), axes.set_title("S")))
shown(lambda axes: (axes.bar([0, 1], [3, 4], 0.4, label="g"), axes.bar([0.4, 1.4], [5, 6], 0.4), axes.set_xticks([0.2, 1.2], ["A", "B"])))
shown(lambda axes: (axes.barh(["A", "B"], [3, 4]), axes.set_xlabel("n")))
shown(lambda axes: axes.pie([90, 10], labels=["most", "few"], startangle=90))
shown(lambda axes: axes.boxplot([[1, 2, 3, 4, 30], [5, 6, 7]], patch_artist=True))
shown(lambda axes: axes.imshow([[1, 2]]))
shown(lambda axes: (axes[0].plot([1], [2]), axes[1].scatter([1], ["x"])), 2)`;
    const { results, error } = await sandbox.runCode(code);
    expect(error).toBeUndefined();
    expect(results.every(({ png, text }) => (png ?? "").length > 1000 && text !== undefined)).toBe(true);
    const charts = results.map(({ chart }): unknown => chart);
    const line = {
      label: "a",
      points: [
        ["2026-01-01", 1],
        ["2026-01-02", null],
      ],
    };
    expect(charts).toMatchObject([
      { type: "line", x_scale: "datetime", y_scale: "linear", y_unit: "m/s", title: null, elements: [line] },
      {
        type: "scatter",
        y_scale: "log",
        title: "S",
        elements: [
          {
            points: [
              [1, 10],
              [2, 100],
            ],
          },
        ],
      },
      {
        type: "bar",
        elements: [
          { label: "A", group: "g", value: 3 },
          { label: "B", group: "g", value: 4 },
          { label: "A", group: "Group 1", value: 5 },
          { label: "B", group: "Group 1", value: 6 },
        ],
      },
      {
        type: "bar",
        y_label: "n",
        elements: [
          { label: "A", group: "Group 0", value: 3 },
          { label: "B", value: 4 },
        ],
      },
      {
        type: "pie",
        elements: [
          { label: "most", angle: 324, radius: 1 },
          { label: "few", angle: 36 },
        ],
      },
      {
        type: "box_and_whisker",
        elements: [
          { min: 1, first_quartile: 2, median: 3, third_quartile: 4, max: 4, outliers: [30] },
          { min: 5, median: 6, max: 7, outliers: [] },
        ],
      },
      { type: "unknown", elements: [] },
      { type: "superchart", elements: [{ type: "line" }, { type: "scatter", y_scale: "categorical" }] },
    ]);
  });

  it("shows pictures that code shows or saves, and starts programs with a backend of their own", async () => {
    const code = `from PIL import Image
image = Image.new("RGB", (4, 4))
image.show(); image.save("picture.png")
import subprocess, sys
print(subprocess.run([sys.executable, "-c", "import matplotlib.pyplot"]).returncode)
image`;
    const { results, logs } = await sandbox.runCode(code);
    expect(results.map(({ png, isMainResult }) => [png !== undefined, isMainResult])).toEqual([
      [true, false],
      [true, false],
      [true, true],
    ]);
    expect(logs.stdout.join("")).toBe("0\n");
    const { error } = await sandbox.runCode("1", { language: "js" });
    expect(error).toMatchObject({ value: expect.stringMatching(/cannot run javascript.*Node\.js/) });
  });
});
