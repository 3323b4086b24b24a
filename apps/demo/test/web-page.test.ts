import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "@fenced/test-support";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { pathWithNodeOnly, startDemo, temporaryFolder } from "./run-demo.ts";
import { expectAnswer } from "./solved.ts";

const fixture = (name: string): string => readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8");

/** Starts the demo with `--web` and returns the page's address. */
async function startWeb(...args: readonly string[]): Promise<string> {
  return startWebWith({}, args);
}

async function startWebWith(env: Readonly<Record<string, string>>, args: readonly string[] = []): Promise<string> {
  const { child, outcome } = startDemo(["--web", "--port", "0", "--executor", "local", ...args], env);
  onTestFinished(async () => {
    child.kill("SIGINT");
    expect((await outcome).exitCode).toBe(130);
  });
  let said = "";
  for await (const chunk of child.stdout) {
    said += String(chunk);
    const url = /Open (http:\S+)/.exec(said)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error(`The demo ended: ${said}`);
}

/** Writes a recording of a coder who says these things. */
async function writeRecord(file: string, said: readonly string[]): Promise<void> {
  const modelInfo = { family: "written", vision: false, functionCalling: true, structuredOutput: false };
  const usage = { promptTokens: 0, completionTokens: 0 };
  const lines = said.map((content) =>
    JSON.stringify({
      version: 1,
      modelInfo,
      request: { messages: [] },
      result: { content, usage, finishReason: "stop" },
    }),
  );
  await writeFile(file, lines.map((line) => `${line}\n`).join(""));
}

describe("the demo's page", needs("chromium", "python3"), () => {
  let browser: Browser;
  beforeAll(async () => {
    const root = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: root });
  });
  afterAll(() => browser.close());

  async function open(url: string): Promise<Page> {
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    const problems: string[] = [];
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    page.on("pageerror", (error) => problems.push(String(error)));
    onTestFinished(() => expect(problems).toEqual([]));
    await page.goto(url);
    await page.getByRole("button", { name: "Run", exact: true, disabled: false }).waitFor();
    return page;
  }

  const card = (page: Page, heading: RegExp) =>
    page.locator("#chat > li").filter({ has: page.getByRole("heading", { name: heading }) });

  it("runs a chat, streams output, offers files, and shows the same after a reload", async () => {
    const page = await open(await startWeb());
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await card(page, /^runner output/)
      .first()
      .waitFor();
    await card(page, /The chat is over/).waitFor();
    expect(await page.getByRole("status").textContent()).toBe("The chat is over.");
    expect(await card(page, /^runner exit code 1/).count()).toBe(1);
    expect(await card(page, /^runner exit code 0/).count()).toBe(2);
    expect(
      await card(page, /^coder/)
        .locator("pre code")
        .count(),
    ).toBe(3);
    const chart = page.getByRole("img", { name: "Picture 1, made by the program: chart.svg" });
    await chart.waitFor();
    expect(await page.evaluate("document.querySelector('figure img').naturalWidth")).toBe(680);
    const before = await page.locator("#chat").innerText();
    await page.reload();
    await card(page, /The chat is over/).waitFor();
    await chart.waitFor();
    expect(await page.locator("#chat").innerText()).toBe(before);
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: /Download penguins\.json/ }).click();
    expect((await download).suggestedFilename()).toBe("penguins.json");
  });

  it("shows the answer apart, as Markdown, without the word that ended the chat", async () => {
    const page = await open(await startWeb());
    await page.getByRole("button", { name: "Run", exact: true }).click();
    const answer = page.locator("#chat > li.answer");
    await answer.waitFor();
    expect(await answer.getByRole("heading").allTextContents()).toEqual(["Answer"]);
    expect(await answer.locator("strong").allTextContents()).toEqual(["Adelie", "20.0%", "674.7 g"]);
    const adelie = answer.getByRole("row", { name: /^Adelie/ }).getByRole("cell");
    expect(await adelie.allTextContents()).toEqual(["Adelie", "4043.5 g", "3368.8 g", "674.7 g", "20.0%"]);
    expect(await answer.innerText()).not.toMatch(/TERMINATE|\*\*|\| /);
    const output = await page.getByRole("region", { name: "Output of runner" }).nth(1).textContent();
    expectAnswer(output ?? "", `The Adelie penguins ${await answer.textContent()}`);
  });

  it("shows the same answer and a chart from JavaScript if there is no Python", async () => {
    const page = await open(await startWebWith({ PATH: await pathWithNodeOnly() }));
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page
      .locator("#chat > li.answer")
      .getByRole("row", { name: /^Adelie/ })
      .waitFor();
    await page.getByRole("img", { name: /chart\.svg/ }).waitFor();
    expect(await page.getByRole("region", { name: "Code, javascript" }).count()).toBe(3);
    expect(await page.evaluate("document.querySelector('figure img').naturalWidth")).toBe(680);
  });

  it("makes no HTML of what the model wrote, and loads nothing that the model or the code names", async () => {
    const record = join(await temporaryFolder(), "hostile.jsonl");
    const svg =
      '<svg xmlns="http://www.w3.org/2000/svg" width="320" height="200"><script>top.hacked = 1; alert(1)</script>' +
      '<image href="http://127.0.0.1:9/from-svg.png" width="9" height="9"/><rect width="320" height="200" fill="red"/></svg>';
    const program = `require("node:fs").writeFileSync("evil.svg", ${JSON.stringify(svg)});`;
    const answer = [
      '<img src="x" onerror="hacked = 1"> <script>hacked = 1</script>',
      "[here](javascript:hacked=1) and [your bank](https://evil.example/bank) ![pixel](http://127.0.0.1:9/pixel.png)",
      `${"> ".repeat(2000)}deep`,
      `- item\n${"  ".repeat(30)}- deeper`,
      "_a".repeat(5000),
      "TERMINATE",
    ].join("\n\n");
    await writeRecord(record, [`\`\`\`javascript\n${program}\n\`\`\``, answer]);
    const page = await open(await startWeb("--replay", record));
    const asked: string[] = [];
    page.on("request", (each) => asked.push(each.url()));
    page.on("dialog", () => asked.push("a dialog"));
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.locator("#chat > li.answer").waitFor();
    const picture = page.getByRole("img", { name: /evil\.svg/ });
    await picture.waitFor();
    expect(await page.evaluate("document.querySelector('figure img').naturalWidth")).toBe(320);
    expect(await page.evaluate("[window.hacked, document.querySelectorAll('li img, li script').length]")).toEqual([
      undefined,
      1,
    ]);
    expect(await page.evaluate("[...document.querySelectorAll('#chat > li.answer a')].map((a) => a.href)")).toEqual([
      "https://evil.example/bank",
      "http://127.0.0.1:9/pixel.png",
    ]);
    const text = await page.locator("#chat > li.answer").innerText();
    expect(text).toContain('<img src="x" onerror="hacked = 1"> <script>hacked = 1</script>');
    expect(text).toContain("[here](javascript:hacked=1) and your bank (https://evil.example/bank)");
    const { origin } = new URL(page.url());
    expect(asked.filter((each) => !each.startsWith(origin) && !each.startsWith(`blob:${origin}`))).toEqual([]);
  });

  it("shows a plot", needs("jupyter"), async () => {
    const plots = await mkdtemp(join(tmpdir(), "fenced-demo-plots-"));
    onTestFinished(() => rm(plots, { recursive: true }));
    const page = await open(await startWeb("--executor", "jupyter", "--output", plots));
    await page.getByRole("button", { name: "Run", exact: true }).click();
    const plot = page.getByRole("img", { name: /Picture 1/ });
    await plot.waitFor();
    await card(page, /The chat is over/).waitFor();
    const isDrawn = await page.evaluate("document.querySelector('figure img').naturalWidth > 100");
    expect(isDrawn).toBe(true);
  });

  it("asks for approval, and can be used with only the keyboard", async () => {
    const page = await open(await startWeb("--approve"));
    const task = page.getByLabel("Task");
    await task.focus();
    await page.keyboard.press("Control+Enter");
    const question = card(page, /asks for approval/);
    await question.first().waitFor();
    expect(await page.getByRole("status").textContent()).toBe("The runner waits for your approval.");
    // A page that is loaded later shows the same question.
    await page.reload();
    await question.first().waitFor();
    expect(await card(page, /^runner (output|exit code)/).count()).toBe(0);
    // The code is shown once: where it is approved.
    expect(await page.locator("pre code").count()).toBe(1);
    expect(await question.locator("pre code").count()).toBe(1);
    await page.setViewportSize({ width: 360, height: 800 });
    const hidden =
      "[...document.querySelectorAll('li.waiting pre')].map((e) => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight])";
    expect(await page.evaluate(hidden)).toEqual([[0, 0]]);
    await page.getByRole("button", { name: "Run this code" }).focus();
    await page.keyboard.press("Enter");
    await question.first().getByText("Approved.").waitFor();
    await card(page, /^runner exit code 1/).waitFor();
    await page.getByRole("button", { name: "Refuse" }).press("Enter");
    await card(page, /The chat failed/).waitFor();
    await page.getByText("You refused the code").waitFor();
  });

  it("can be stopped and run again", async () => {
    const page = await open(await startWeb("--approve"));
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await card(page, /asks for approval/).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await card(page, /The chat failed/).waitFor();
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("button", { name: "Run this code" }).waitFor();
    expect(await card(page, /The chat failed/).count()).toBe(1);
  });

  it("names every control, has enough contrast, and fits narrow screens", async () => {
    const page = await open(await startWeb());
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await card(page, /The chat is over/).waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await page.evaluate(fixture("low-contrast.js"))).toEqual([]);
    }
    for (const width of [360, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    }
    const unnamed = await page.evaluate(fixture("unnamed-controls.js"));
    expect(unnamed).toEqual([]);
  });
});

describe("the page's server", needs("python3"), () => {
  it("accepts requests only from its own page", async () => {
    const url = new URL(await startWeb());
    const token = url.hash.slice(1);
    const ask = async (path: string, headers: Record<string, string>, body?: string): Promise<number> => {
      const call = request(new URL(path, url), { headers, method: body === undefined ? "GET" : "POST" });
      call.end(body);
      const [response] = (await once(call, "response")) as [IncomingMessage];
      response.destroy();
      return response.statusCode ?? 0;
    };
    const authorization = `Bearer ${token}`;
    expect(await ask("/", {})).toBe(200);
    expect(await ask("/events", { authorization })).toBe(200);
    expect(await ask("/events", {})).toBe(401);
    expect(await ask("/events", { authorization: "Bearer wrong" })).toBe(401);
    expect(await ask("/", { host: "evil.example" })).toBe(403);
    expect(await ask("/events", { authorization, host: "evil.example" })).toBe(403);
    expect(await ask("/task", { authorization, origin: "http://evil.example" }, '{"task":"x"}')).toBe(403);
    expect(await ask("/task", { authorization, origin: "http://127.0.0.1:1" }, '{"task":"x"}')).toBe(403);
    expect(await ask("/task", { authorization, origin: url.origin }, '{"task":" "}')).toBe(400);
    expect(await ask("/file?path=../secret", { authorization })).toBe(400);
    expect(await ask("/answer", { authorization }, "{")).toBe(409);
    expect(await ask("/page.html", { authorization })).toBe(404);
  });
});
