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

/** What opens sessions. */
interface SessionBackend<Opening, Session> {
  open(opening: Opening): Promise<Session>;
  close(): Promise<void>;
}

/**
 * A backend whose sessions open once an interpreter is waiting, if one can, so that blocks are forked from it.
 *
 * @param onWarm - called for each session that has one.
 */
export function openedWarm<Opening extends { readonly signal: AbortSignal }, Session extends BlockSession>(
  backend: SessionBackend<Opening, Session>,
  env: Readonly<Record<string, string>>,
  onWarm: () => void,
): SessionBackend<Opening, Session> {
  return {
    open: async (opening) => {
      const session = await backend.open(opening);
      if (await untilForked(session, env, opening.signal)) onWarm();
      return session;
    },
    close: () => backend.close(),
  };
}

/** Waits until a session's Python blocks are forked from the waiting interpreter; `false` if that does not happen. */
async function untilForked(
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
