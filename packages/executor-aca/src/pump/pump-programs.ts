import { readFileSync } from "node:fs";
import { carrierText, wireModule } from "@fenced/executor-kit/supervisor";

const pumpProgram: string = readFileSync(new URL("./pump.py", import.meta.url), "utf8");
const toolsProgram: string = readFileSync(new URL("./tools.py", import.meta.url), "utf8");
const scribeProgram: string = readFileSync(new URL("./scribe.py", import.meta.url), "utf8");

/** What identifies one pump. */
export interface PumpPlace {
  /** What steps and their answers begin with. */
  readonly secret: string;
  /** What its journal begins with. */
  readonly mark: string;
  /** The path of the journal. */
  readonly journal: string;
  /** The directory for the socket of host functions. */
  readonly directory: string;
}

/** Python code that starts a pump in a session that has the helper. */
export function installPump({ secret, mark, journal, directory }: PumpPlace): string {
  const words = [wireModule, toolsProgram, pumpProgram, secret, carrierText(scribeProgram), journal, mark, directory];
  return `
def _fenced_install(wire, tools, pump, *words):
    import sys, types
    for name, source in (("__fenced_wire__", wire), ("__fenced_tools__", tools), ("__fenced_pump__", pump)):
        module = sys.modules[name] = types.ModuleType(name)
        exec(compile(source, "<fenced>", "exec"), module.__dict__)
    sys.modules["__fenced__"].pump = module.start(*words)
_fenced_install(${words.map((word) => JSON.stringify(word)).join(", ")})
del _fenced_install
${interpreterName}
`;
}

/** Python code that calls a method of the pump with a text, and evaluates to its result. */
export function callPump(method: "step", text: string): string {
  return `__import__("sys").modules["__fenced__"].pump.${method}(${JSON.stringify(text)})`;
}

/** Python code that evaluates to the interpreter's identity: its process id and start time. */
export const interpreterName: string = `"fenced %d %s" % (
    __import__("os").getpid(), open("/proc/self/stat", "rb").read().rpartition(b")")[2].split()[19].decode())`;

/** What `interpreterName` evaluates to, in an answer. */
export const interpreterForm: RegExp = /fenced \d+ \d+/;

/**
 * Why a step failed, according to the interpreter: `bare`, it does not have our pump, so no block began; `taken`, another
 * executor's pump is there; `busy`, an earlier block does not end; `died`, anything else.
 */
export function reasonOf(problem: string): "bare" | "taken" | "busy" | "died" {
  if (problem.includes("fenced: another executor")) return "taken";
  if (/KeyError: '__fenced__'|has no attribute '(?:pump|step)'|fenced: no scribe/.test(problem)) return "bare";
  return problem.includes("fenced: an earlier block") ? "busy" : "died";
}
