/** Prints the process that forked the block's shepherd, and whether that is the waiting interpreter. */
export const forkerCode = `
import os
pid = open("/proc/%d/stat" % os.getppid()).read().rpartition(")")[2].split()[1]
print(pid, "(waits for blocks)" in open("/proc/%s/cmdline" % pid).read())
`;
const tries = 50;

interface BlockEvent {
  readonly type: string;
  readonly data?: unknown;
}

/** What runs blocks: a backend's session. */
interface BlockSession {
  readonly facts: { readonly missing?: ReadonlyMap<string, string> };
  run(
    block: {
      readonly language: string;
      readonly code: string;
      readonly env: Readonly<Record<string, string>>;
      readonly timeoutMs: number;
    },
    sink: { readonly signal: AbortSignal; write(event: BlockEvent): undefined },
  ): Promise<unknown>;
}

/** Waits until a session's Python blocks are forked from the waiting interpreter; `false` if that does not happen. */
export async function untilForked(
  session: BlockSession,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<boolean> {
  const block = { language: "python", code: forkerCode, env, timeoutMs: Number.POSITIVE_INFINITY };
  for (let turn = 0; turn < tries && session.facts.missing?.has("python") !== true; turn += 1) {
    let text = "";
    const write = ({ type, data }: BlockEvent): undefined => {
      if (type === "stdout" || type === "stderr") text += String(data);
    };
    await session.run(block, { signal, write });
    if (text.endsWith("True\n")) return true;
  }
  return false;
}
