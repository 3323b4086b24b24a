/** Disposes of all of them, even if one fails; then rejects with the first error. */
export async function disposeAll(resources: readonly AsyncDisposable[]): Promise<void> {
  const ends = await Promise.allSettled(resources.map(async (resource) => resource[Symbol.asyncDispose]()));
  const failed = ends.find((end) => end.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
