import * as z from "zod";

/** A model's judgement on how far the team is: AutoGen's progress ledger. */
export interface ProgressLedger {
  readonly isRequestSatisfied: boolean;
  readonly isInLoop: boolean;
  readonly isProgressBeingMade: boolean;
  readonly nextSpeaker: string;
  readonly instruction: string;
  /** Why it thinks that the task is solved, or not. */
  readonly reason: string;
}

interface Judgement {
  readonly reason: string;
  readonly answer: boolean;
}

interface Choice {
  readonly reason: string;
  readonly answer: string;
}

/** The model's answer, with AutoGen's names. */
export interface ProgressAnswer {
  readonly is_request_satisfied: Judgement;
  readonly is_in_loop: Judgement;
  readonly is_progress_being_made: Judgement;
  readonly next_speaker: Choice;
  readonly instruction_or_question: Choice;
}

const judgement = z.object({ reason: z.string(), answer: z.boolean() });

/** The schema of the model's answer. */
export function progressLedgerSchema(names: readonly string[]): z.ZodType<ProgressAnswer> {
  return z.object({
    is_request_satisfied: judgement,
    is_in_loop: judgement,
    is_progress_being_made: judgement,
    next_speaker: z.object({ reason: z.string(), answer: z.enum(names) }),
    instruction_or_question: z.object({ reason: z.string(), answer: z.string().min(1) }),
  });
}

/** The answer in our own words. */
export function toProgressLedger(answer: ProgressAnswer): ProgressLedger {
  return {
    isRequestSatisfied: answer.is_request_satisfied.answer,
    isInLoop: answer.is_in_loop.answer,
    isProgressBeingMade: answer.is_progress_being_made.answer,
    nextSpeaker: answer.next_speaker.answer,
    instruction: answer.instruction_or_question.answer,
    reason: answer.is_request_satisfied.reason,
  };
}
