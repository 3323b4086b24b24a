/** @param {(value: unknown, options: object) => string} objectInspect */
export function makeInspect(objectInspect) {
  /** @type {(value: unknown, options?: { depth?: number | null }) => string} */
  const inspect = (value, { depth = 4 } = {}) => {
    if (value instanceof Error) return describeError(value, inspect);
    return objectInspect(value, { depth: depth ?? Infinity, maxStringLength: 10_000 });
  };
  return inspect;
}

/**
 * Formats an error as Node prints it.
 *
 * @param {any} error
 * @param {(value: unknown) => string} inspect
 */
function describeError(error, inspect) {
  // The first line of the stack has the name that the error had when it was created.
  const [first = "", ...lines] = String(error.stack ?? "")
    .trimEnd()
    .split("\n");
  const text = [firstLine(error), ...(first.endsWith(error.message) ? [] : [first]), ...lines].join("\n").trimEnd();
  return error.cause === undefined ? text : `${text}\n  [cause]: ${inspect(error.cause)}`;
}

/** @param {any} error */
export function firstLine({ name = "Error", message = "" }) {
  return message === "" ? name : `${name}: ${message}`;
}

/** @param {(value: unknown, options?: object) => string} inspect */
export function makeFormat(inspect) {
  const shown = (/** @type {unknown} */ value) => (typeof value === "string" ? value : inspect(value));
  return (/** @type {unknown[]} */ ...values) => {
    if (typeof values[0] !== "string") return values.map(shown).join(" ");
    const rest = values.slice(1);
    const first = values[0].replace(/%([sdifjoOc%])/g, (whole, kind) => {
      if (kind === "%") return rest.length > 0 ? "%" : whole;
      if (rest.length === 0) return whole;
      const value = rest.shift();
      if (kind === "s") return typeof value === "object" ? inspect(value, { depth: 1 }) : String(value);
      if (kind === "d") return String(Number(value));
      if (kind === "i") return String(Number.parseInt(String(value), 10));
      if (kind === "f") return String(Number.parseFloat(String(value)));
      if (kind === "j") return JSON.stringify(value);
      return kind === "c" ? "" : inspect(value);
    });
    return [first, ...rest.map(shown)].join(" ");
  };
}

/**
 * @param {(to: 1 | 2) => (...values: unknown[]) => void} printed
 * @param {(value: unknown, options?: object) => string} inspect
 */
export function makeConsole(printed, inspect) {
  const [out, error] = [printed(1), printed(2)];
  let indent = "";
  /** @type {Map<string, number>} */
  const counts = new Map();
  /** @type {Map<string, number>} */
  const started = new Map();
  const log = (/** @type {unknown[]} */ ...values) =>
    indent === "" ? out(...values) : out(indent.slice(1), ...values);
  const elapsed = (/** @type {string} */ label) =>
    `${label}: ${(Date.now() - (started.get(label) ?? Date.now())).toFixed(0)}ms`;
  return {
    log,
    info: log,
    debug: log,
    error,
    warn: error,
    trace: error,
    dir: (/** @type {unknown} */ value, /** @type {object} */ options) => log(inspect(value, options)),
    table: (/** @type {unknown} */ rows) => log(tableText(rows, inspect)),
    assert(/** @type {unknown} */ holds, /** @type {unknown[]} */ ...values) {
      if (!holds) error("Assertion failed", ...values);
    },
    group(/** @type {unknown[]} */ ...values) {
      if (values.length > 0) log(...values);
      indent += "  ";
    },
    groupEnd() {
      indent = indent.slice(2);
    },
    count(label = "default") {
      counts.set(label, (counts.get(label) ?? 0) + 1);
      log(`${label}: ${counts.get(label)}`);
    },
    time: (label = "default") => void started.set(label, Date.now()),
    timeLog: (label = "default") => log(elapsed(label)),
    timeEnd(label = "default") {
      log(elapsed(label));
      started.delete(label);
    },
  };
}

/**
 * @param {unknown} rows
 * @param {(value: unknown) => string} inspect
 */
function tableText(rows, inspect) {
  if (typeof rows !== "object" || rows === null) return inspect(rows);
  const entries = Object.entries(rows).map(([key, row]) => ({ key, row: /** @type {any} */ (row) }));
  const isRow = (/** @type {unknown} */ row) => typeof row === "object" && row !== null;
  const columns = [...new Set(entries.flatMap(({ row }) => (isRow(row) ? Object.keys(row) : ["Values"])))];
  const cell = (/** @type {any} */ row, /** @type {string} */ column) => {
    if (!isRow(row)) return column === "Values" ? inspect(row) : "";
    return column in row ? inspect(Reflect.get(row, column)) : "";
  };
  const lines = [
    ["(index)", ...columns],
    ...entries.map(({ key, row }) => [key, ...columns.map((each) => cell(row, each))]),
  ];
  const widths = (lines[0] ?? []).map((_, at) => Math.max(...lines.map((line) => (line[at] ?? "").length)));
  const texts = lines.map((line) => `| ${line.map((text, at) => text.padEnd(widths[at] ?? 0)).join(" | ")} |`);
  return [texts[0], `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`, ...texts.slice(1)].join("\n");
}
