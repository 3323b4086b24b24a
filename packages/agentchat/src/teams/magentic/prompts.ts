/** The default prompt for the final answer. */
export const defaultFinalAnswerPrompt = `The work on this task is over:

{task}

The messages above are all that was done for it. Answer the task for the user who set it, as well as the work allows. Say what is still open, if anything is.`;

/** Asks for what is known before anybody has done anything. */
export const factsPrompt = `You lead a team that works on this task:

{task}

Before the team begins, write down what you can say about it without asking anybody. Use these four headings and nothing else:

1. FACTS GIVEN IN THE TASK: names, numbers and conditions in it.
2. FACTS TO LOOK UP: what has to be found, and where it may be found.
3. FACTS TO WORK OUT: what has to be computed or concluded.
4. EDUCATED GUESSES: what you remember or suppose, marked as such.

Do not plan yet.`;

/** Asks for a plan. */
export const planPrompt = `Your team consists of:

{team}

Write a short plan for the task, as a list. Name who does what. Not everybody has to take part.`;

/** Asks for new facts after the team got stuck. */
export const factsUpdatePrompt = `The team does not make progress on this task:

{task}

Rewrite your list of facts with what was learned since. Move guesses that turned out to be true or false, and add at least one new guess, with a reason. The list so far:

{facts}`;

/** Asks for a new plan after the team got stuck. */
export const planUpdatePrompt = `Say briefly what went wrong, and above all why. Then write a new plan, as a list, that overcomes it and does not repeat the same mistakes. Name who does what. Your team consists of:

{team}`;

/** Tells the team what it is about: the task ledger. */
export const ledgerPrompt = `We work on this task for a user:

{task}

The team:

{team}

What we know at the start:

{facts}

The plan:

{plan}`;

/** Asks how far the team is. */
export const progressPrompt = `The task was:

{task}

The team consists of:

{team}

Judge the conversation so far, and decide how to go on. Answer these questions, each with a reason:

- is_request_satisfied: is the task completely solved? No, if anything of it is still open.
- is_in_loop: do the same requests or answers repeat? A loop can span several turns.
- is_progress_being_made: did the last messages bring something new? No, if they repeat or fail in the same way.
- next_speaker: who speaks next? One of {names}.
- instruction_or_question: what do you tell or ask this participant, as if you spoke to them? Include what they need to know.

Answer with JSON of this form and nothing else:

{"is_request_satisfied": {"reason": "…", "answer": false}, "is_in_loop": {"reason": "…", "answer": false}, "is_progress_being_made": {"reason": "…", "answer": true}, "next_speaker": {"reason": "…", "answer": "name"}, "instruction_or_question": {"reason": "…", "answer": "…"}}`;
