/** What the person who typed the command has to put right. */
export class UsageError extends Error {}
