import { Script } from "node:vm";
import { TextError } from "./scripts.mjs";

/**
 * Creates a function that strips the types from TypeScript. Line numbers stay the same, unless the text has enums or the like.
 *
 * @param {string} program - a CommonJS module; compiled now, because nothing can be compiled later, and run with the first text.
 * @returns {(text: string, name: string) => string} It throws a `TextError` if the text is not TypeScript.
 */
export function typeStripper(program) {
  const script = new Script(`(function (module, require) {\n${program}\n})`, { filename: "typescript.js" });
  /** @type {any} */
  let compiler;
  return (text, name) => {
    if (!compiler) {
      const module = { exports: {} };
      script.runInThisContext()(module, () => ({ TextDecoder, TextEncoder, Buffer }));
      compiler = module.exports;
    }
    const transform = (/** @type {string} */ mode) =>
      compiler.transformSync(text, { mode, module: true, filename: name }).code;
    try {
      return transform("strip-only");
    } catch (error) {
      const found = /** @type {any} */ (error);
      if (found?.code === "UnsupportedSyntax") return transform("transform");
      if (typeof found?.snippet !== "string") throw error;
      throw new TextError(`${name}:${found.startLine}\n${found.snippet}\nSyntaxError: ${found.message}`);
    }
  };
}
