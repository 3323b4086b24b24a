import type { HostCallApproval } from "@fenced/core";
import { untilAborted } from "@fenced/core/abort";
import type { Skill } from "./skill.ts";

/** A script that a model wants to run. */
export interface SkillScriptRequest {
  /** The skill as it is now; the answer is about all of its files. */
  readonly skill: Skill;
  /** The script's path in the skill. */
  readonly script: string;
  readonly args: readonly string[];
  /** What the script reads from its standard input. */
  readonly stdin: string | undefined;
  /** True if other files of this skill were approved before, so that something in it has changed since. */
  readonly changed: boolean;
  /** Aborted when the answer is no longer needed. */
  readonly signal: AbortSignal;
}

/** Decides about the scripts of a skill. If it throws, the script does not run. */
export type ApproveSkill = (request: SkillScriptRequest) => HostCallApproval | Promise<HostCallApproval>;

/** Which skills may run scripts: an answer is about one content, and lasts until that changes. */
export class Consent {
  readonly #approved: Set<string>;
  /** Names of skills that were approved here, with any content. */
  readonly #known = new Set<string>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(approved: Iterable<string>) {
    this.#approved = new Set(approved);
  }

  /** Asks unless this content is approved already; one question at a time. */
  async ask(
    request: Omit<SkillScriptRequest, "changed">,
    approve: ApproveSkill | undefined,
  ): Promise<HostCallApproval> {
    const { skill, signal } = request;
    if (this.#covers(skill)) return { approved: true };
    if (!approve) return { approved: false, reason: `Nobody can be asked. Its digest is ${skill.digest}.` };
    const answered = this.#turn.then(async (): Promise<HostCallApproval> => {
      signal.throwIfAborted();
      // An earlier answer was about the same content.
      if (this.#covers(skill)) return { approved: true };
      const asked = approve({ ...request, changed: this.#known.has(skill.name) });
      const answer = await untilAborted(Promise.resolve(asked), signal);
      if (!answer.approved) return answer;
      this.#approved.add(skill.digest);
      this.#known.add(skill.name);
      return { approved: true };
    });
    // The next question waits for this one, however it ends.
    this.#turn = answered.catch(() => {});
    return untilAborted(answered, signal);
  }

  #covers({ name, digest }: Skill): boolean {
    const covers = this.#approved.has(digest);
    if (covers) this.#known.add(name);
    return covers;
  }
}
