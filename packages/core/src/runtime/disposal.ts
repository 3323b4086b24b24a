import { Readable } from "node:stream";
import { clearTimeout, setTimeout } from "node:timers";

/**
 * Node before 24 adds `Symbol.dispose` and `Symbol.asyncDispose` to its main context only, so that they are missing in the
 * contexts of `node:vm` in which Jest and Vitest's vm pools run tests. Without them, every class that can be disposed
 * would have a method called `undefined`. Takes the symbols that Node's own classes use.
 */
const timer = setTimeout(() => {}, 0);
clearTimeout(timer);
add("dispose", timer);
add("asyncDispose", Readable.prototype);

function add(name: "dispose" | "asyncDispose", disposable: object): void {
  if (name in Symbol) return;
  const description = `Symbol.${name}`;
  Object.defineProperty(Symbol, name, { value: findSymbol(disposable, description) ?? Symbol(description) });
}

/** The symbol with this description that names a property of `object` or of one of its prototypes. */
function findSymbol(object: object | null, description: string): symbol | undefined {
  if (object === null) return undefined;
  const own = Object.getOwnPropertySymbols(object).find((symbol) => symbol.description === description);
  return own ?? findSymbol(prototypeOf(object), description);
}

function prototypeOf(object: object): object | null {
  const prototype: unknown = Object.getPrototypeOf(object);
  return typeof prototype === "object" ? prototype : null;
}
