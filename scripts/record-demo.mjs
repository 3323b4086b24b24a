/**
 * Records a real run of the demo in a terminal as an animated SVG, for the README and the site: `npm run demo:record`. Needs
 * `script` (Debian: bsdutils) for the terminal.
 */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runTasks } from "./tasks.mjs";
import { root } from "./workspace.mjs";

const [columns, rows] = [112, 30];
const [lineHeight, characterWidth, padding, bar] = [18, 7.83, 16, 34];
/** SGR colors as a light-on-dark terminal shows them. */
const colours = new Map([
  ["31", "#ff7b72"],
  ["32", "#7ee787"],
  ["33", "#e3b341"],
  ["36", "#79c0ff"],
  ["2", "#8b949e"],
]);

/**
 * @typedef {object} Line
 * @property {number} at - Seconds from the start of the run.
 * @property {string} text - With its SGR sequences, each of which ends with a reset.
 */

if ((await runTasks(["@fenced/demo#build"])).status !== 0) process.exit(1);
const lines = await record();
writeFileSync(join(root, "docs/images/demo.svg"), draw(lines));

/** @returns {Promise<Line[]>} */
async function record() {
  const { CI: _, OPENAI_API_KEY: __, OPENAI_BASE_URL: ___, ...env } = process.env;
  const command = `stty cols ${columns} rows ${rows}; exec node apps/demo/dist/main.js`;
  const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], { cwd: root, env });
  const started = performance.now();
  /** @type {Line[]} */
  const found = [{ at: 0, text: "␛[32m$␛[0m npm run demo" }];
  let rest = "";
  child.stdout.setEncoding("utf8");
  for await (const chunk of child.stdout) {
    const pieces = `${rest}${String(chunk)}`.split("\r\n");
    rest = pieces.pop() ?? "";
    const at = (performance.now() - started) / 1000;
    for (const text of pieces) found.push({ at, text: readable(text) });
  }
  if (child.exitCode !== 0 && child.exitCode !== null) {
    throw new Error(`The demo failed with exit code ${child.exitCode}.`);
  }
  return found;
}

/**
 * A line with a visible character for Escape, and without the temporary directory of the run.
 *
 * @param {string} text
 */
function readable(text) {
  return text.replaceAll("\u001B", "␛").replace(/"\/[^"]*\/\.fenced-[^"]*\.py"/, '"block.py"');
}

/** @param {readonly Line[]} all */
function draw(all) {
  const width = Math.ceil(columns * characterWidth + 2 * padding);
  const height = rows * lineHeight + 2 * padding + bar;
  const duration = (all.at(-1)?.at ?? 0) + 0.1;
  const steps = all.map(({ at }, index) => {
    const scrolled = Math.max(0, index + 1 - rows) * lineHeight;
    return `${((100 * at) / duration).toFixed(2)}% { transform: translateY(-${scrolled}px) }`;
  });
  const end = Math.max(0, all.length - rows) * lineHeight;
  const texts = all.map(({ at, text }, index) => {
    const y = padding + bar + (index + 0.75) * lineHeight;
    return `    <text x="${padding}" y="${y}" style="animation-delay:${at.toFixed(2)}s">${spans(text)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
  <title id="title">A recording of the demo: the first program fails, the coder reads the error, and the second program works.</title>
  <style>
    text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #e6edf3; white-space: pre; animation: show 1ms backwards }
    .b { font-weight: 700 }
    .lines { transform: translateY(-${end}px); animation: scroll ${duration.toFixed(2)}s step-end backwards }
    @keyframes show { from { opacity: 0 } }
    @keyframes scroll { ${steps.join(" ")} }
    @media (prefers-reduced-motion: reduce) { text, .lines { animation: none } }
  </style>
  <clipPath id="screen"><rect x="0" y="${bar}" width="${width}" height="${height - bar - padding / 2}" /></clipPath>
  <rect width="${width}" height="${height}" rx="8" fill="#0d1117" />
  <g><circle cx="20" cy="18" r="6" fill="#ff5f57" /><circle cx="40" cy="18" r="6" fill="#febc2e" /><circle cx="60" cy="18" r="6" fill="#28c840" /></g>
  <g clip-path="url(#screen)"><g class="lines">
${texts.join("\n")}
  </g></g>
</svg>
`;
}

/** @param {string} text */
function spans(text) {
  let drawn = "";
  let before = "";
  for (const piece of text.split(/(␛\[[\d;]+m[^␛]*␛\[0m)/)) {
    const [, codes = "", content = piece] = /^␛\[([\d;]+)m([^␛]*)/.exec(piece) ?? [];
    if (content === "") continue;
    if (codes !== before) drawn += `${before === "" ? "" : "</tspan>"}${codes === "" ? "" : span(codes.split(";"))}`;
    drawn += escaped(content);
    before = codes;
  }
  return before === "" ? drawn : `${drawn}</tspan>`;
}

/** @param {readonly string[]} codes */
function span(codes) {
  const colour = codes.map((code) => colours.get(code)).find((each) => each !== undefined) ?? "#e6edf3";
  return `<tspan fill="${colour}"${codes.includes("1") ? ' class="b"' : ""}>`;
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
