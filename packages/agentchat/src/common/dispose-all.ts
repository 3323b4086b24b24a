/** Ends all of them, even if one fails; then rejects with what the first failure was. */
export async function disposeAll(resources: readonly AsyncDisposable[]): Promise<void> {
  const ends = await Promise.allSettled(resources.map(async (resource) => resource[Symbol.asyncDispose]()));
  const failed = ends.find((end) => end.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
