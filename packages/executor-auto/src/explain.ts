import { BackendUnavailableError, type ExecutorCapabilities, FencedError } from "@fenced/core";
import type { PassedOverFence } from "./fenced-executor.ts";
import { type Fence, fences } from "./fences.ts";

/** Where the code runs, and why not behind a stronger fence. */
export function explainChoice(
  { name, place }: Fence,
  { kernel = "shared" }: ExecutorCapabilities,
  passedOver: readonly PassedOverFence[],
): string {
  const reasons = passedOver.map(
    (each) => `${capitalized(titleOf(each))} was passed over: ${firstSentence(each.problem)}`,
  );
  return [`The code runs in ${place}${name === "docker" ? kernels[kernel] : ""}.`, ...reasons].join(" ");
}

/** What makes a container stronger than one that shares the machine's kernel. */
const kernels: Readonly<Record<NonNullable<ExecutorCapabilities["kernel"]>, string>> = {
  own: " with a kernel of its own",
  "user-space": " with a kernel in user space",
  shared: "",
};

/** Splits an error into problem and remedy. */
export function whatIsWrong(error: unknown): Pick<PassedOverFence, "problem" | "remedy"> {
  if (!FencedError.isInstance(error)) {
    return { problem: error instanceof Error ? error.message : String(error), remedy: "Report this as a bug." };
  }
  const { message, remedy } = error;
  return { problem: message.endsWith(remedy) ? message.slice(0, -remedy.length).trimEnd() : message, remedy };
}

/** @returns the error for a machine on which no fence could be opened. */
export function nothingOpens(passedOver: readonly PassedOverFence[]): BackendUnavailableError {
  const lines = passedOver.map(
    (each) => `  - ${capitalized(titleOf(each))}: ${each.problem.replaceAll("\n", "\n    ")} ${each.remedy}\n`,
  );
  return new BackendUnavailableError(`No fence could be opened, and code never runs without one:\n${lines.join("")}`, {
    remedy: "Do one of these. `npx -p @fenced/executor-auto fenced doctor` shows what this machine has.",
    cause: new AggregateError(passedOver.map(({ error }) => error)),
  });
}

function titleOf({ name }: PassedOverFence): string {
  return fences.find((each) => each.name === name)?.title ?? name;
}

/** The text with a capital first letter. */
export function capitalized(text: string): string {
  return text.replace(/^\w/, (letter) => letter.toUpperCase());
}

/** The first sentence only: lists and details belong in `passedOver`. */
function firstSentence(text: string): string {
  const [line = ""] = text.split("\n");
  const sentence = /^.*?[.!?](?=\s|$)/.exec(line)?.[0] ?? line;
  return sentence.endsWith(":") ? `${sentence.slice(0, -1)}.` : sentence;
}
