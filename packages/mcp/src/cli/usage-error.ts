/** A mistake in the command line, for the user to fix. */
export class UsageError extends Error {}
