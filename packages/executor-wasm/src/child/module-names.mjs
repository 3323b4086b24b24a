import { isModule } from "../../../executor-kit/src/languages/javascript/scripts.mjs";
import { lookAt, normal, readWhole } from "./paths.mjs";

/** File extensions that an import may leave out. */
const suffixes = ["", ".js", ".mjs", ".cjs", ".ts", ".mts", ".json"];
/** Node modules that need something that is missing here. */
const ofNode =
  /^(?:assert|async_hooks|cluster|dgram|diagnostics_channel|dns|domain|http|http2|https|inspector|readline|repl|stream|string_decoder|tls|tty|v8|vm|wasi|worker_threads|zlib)(?:\/|$)/;

/**
 * Resolves the names of modules, and loads them.
 *
 * @param {import("../../../executor-kit/src/languages/javascript/scripts.mjs").Parser} parser
 * @param {(text: string, name: string) => string} javaScriptOf
 */
export function moduleNames(parser, javaScriptOf) {
  /** @type {readonly string[]} */
  let builtins = [];

  /** @type {(from: string, name: string) => { builtin: string } | { path: string, version: string } | { message: string }} */
  const resolve = (from, name) => {
    const plain = name.replace(/^node:/, "");
    if (builtins.includes(plain)) return { builtin: plain };
    if (name.startsWith("node:") || ofNode.test(name)) {
      return {
        message: `Cannot find module '${name}': JavaScript in WebAssembly has only these Node modules: ${builtins.join(", ")}`,
      };
    }
    const found = find(from.replace(/^file:\/\//, "").replace(/\?[^/]*$/, ""), name);
    return found
      ? { path: found.path, version: found.version }
      : { message: `Cannot find module '${name}' imported from ${from}` };
  };

  return {
    resolve,
    /** @param {readonly string[]} names */
    offer(names) {
      builtins = names;
    },
    /** @type {(from: string, name: string) => string} */
    normalize(from, name) {
      const found = resolve(from, name);
      if ("message" in found) throw new Error(found.message);
      return "builtin" in found ? `node:${found.builtin}` : `${found.path}?${found.version}`;
    },
    /** @type {(name: string, exportsOf: (file: string) => string[]) => string} */
    load(name, exportsOf) {
      const builtin = JSON.stringify(name.slice("node:".length));
      if (name.startsWith("node:")) return exporting(`[${builtin}]`, exportsOf(name));
      const file = name.replace(/\?[^/]*$/, "");
      const text = textOf(file, javaScriptOf);
      if (/\.m[jt]s$/.test(file) || (!/\.(?:cjs|json)$/.test(file) && isModule(parser, text))) return text;
      return exporting(`.requireFrom(${JSON.stringify(file)})(${JSON.stringify(file)})`, exportsOf(file));
    },
    /** @param {string} file */
    source(file) {
      try {
        const text = textOf(file, javaScriptOf);
        const plain = /\.(?:cjs|json)$/.test(file) || !isModule(parser, text);
        if (plain) return { fields: {}, bytes: Buffer.from(text) };
        return { fields: { message: `${file} is an ES module: use import` } };
      } catch (error) {
        return { fields: { message: /** @type {Error} */ (error).message } };
      }
    },
  };
}

/**
 * The source of an ES module that exports what a module of another kind exports.
 *
 * @param {string} access
 * @param {readonly string[]} names
 */
function exporting(access, names) {
  const plain = names.filter((name) => name !== "default" && /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name));
  const lines = plain.map((name) => `const { ${name}: $$${name} } = all; export { $$${name} as ${name} };`);
  return `const all = globalThis[Symbol.for("fenced.modules")]${access};\nexport default all;\n${lines.join("\n")}`;
}

/**
 * @param {string} file
 * @param {(text: string, name: string) => string} javaScriptOf
 */
function textOf(file, javaScriptOf) {
  const bytes = readWhole(file);
  if (!bytes) throw new Error(`Cannot read module ${file}`);
  const text = bytes.toString().replace(/^#!/, "//");
  return /\.m?ts$/.test(file) ? javaScriptOf(text, file) : text;
}

/**
 * @param {string} from
 * @param {string} name
 */
function find(from, name) {
  const directory = normal(from).slice(0, -1);
  if (name.startsWith("file://")) return fileAt(decodeURIComponent(name.slice("file://".length)));
  if (name.startsWith("/")) return fileAt(name);
  if (/^\.\.?(?:\/|$)/.test(name)) return fileAt(`/${[...directory, name].join("/")}`);
  for (let depth = directory.length; depth >= 0; depth -= 1) {
    const found = inPackage(`/${[...directory.slice(0, depth), "node_modules"].join("/")}`, name);
    if (found) return found;
  }
  return undefined;
}

/** @param {string} path */
function fileAt(path) {
  for (const suffix of suffixes) {
    const found = lookAt(path + suffix);
    if (found?.kind === "file") return found;
  }
  return ["index.js", "index.mjs", "index.ts"]
    .map((each) => lookAt(`${path}/${each}`))
    .find((each) => each?.kind === "file");
}

/**
 * @param {string} place - a directory `node_modules`.
 * @param {string} name
 */
function inPackage(place, name) {
  const [, owner = "", rest = ""] = /^((?:@[^/]+\/)?[^/]+)(?:\/(.*))?$/.exec(name) ?? [];
  const root = `${place}/${owner}`;
  const manifest = readWhole(`${root}/package.json`);
  if (!manifest) return rest === "" ? undefined : fileAt(`${root}/${rest}`);
  const { exports: exported, module, main } = JSON.parse(manifest.toString());
  const key = rest === "" ? "." : `./${rest}`;
  const listed =
    typeof exported === "object" && exported !== null && "." in exported
      ? exported[key]
      : key === "."
        ? exported
        : undefined;
  const target = targetOf(listed ?? (key === "." ? (module ?? main ?? "index.js") : key));
  return target === undefined ? undefined : fileAt(`${root}/${target}`);
}

/**
 * @param {unknown} target - of a package's exports.
 * @returns {string | undefined}
 */
function targetOf(target) {
  if (typeof target === "string") return target;
  if (typeof target !== "object" || target === null) return undefined;
  for (const [condition, each] of Object.entries(target)) {
    if (["import", "default", "browser", "require"].includes(condition)) {
      const found = targetOf(each);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}
