import { randomUUID } from "node:crypto";
import type { ControlGroup, ProcessFamily } from "@fenced/executor-kit";

/** The variable that identifies all processes of one block. */
export const blockMarkName = "FENCED_BLOCK";

/** A mark for the processes of the next block. */
export function newBlockMark(): ProcessFamily["mark"] {
  return { name: blockMarkName, value: randomUUID() };
}

/** Creates a group for one block; returns `undefined` if the session has none, or the system refuses to create more. */
export async function blockGroup(session: ControlGroup | undefined, name: string): Promise<ControlGroup | undefined> {
  const group = session?.inner(name);
  return (await group?.make()) === true ? group : undefined;
}
