import { E2BFailure } from "./e2b-failure.ts";
import type { KnownSandbox } from "./known-sandbox.ts";
import { pageOf } from "./pages.ts";

/**
 * Chooses the sandboxes that a query asks for, newest first.
 *
 * @throws E2BFailure if the query is wrong.
 */
export function listed(
  sandboxes: readonly KnownSandbox[],
  query: URLSearchParams,
): { readonly items: readonly KnownSandbox[]; readonly next?: string } {
  const metadata = metadataOf(query.get("metadata"));
  const states = query.getAll("state").flatMap((text) => text.split(","));
  const template = query.get("template");
  const startedAfter = Date.parse(query.get("startedAfter") ?? "1970-01-01T00:00:00Z");
  if (Number.isNaN(startedAfter)) {
    throw new E2BFailure(400, "startedAfter: it must be a time such as 2026-01-01T00:00:00Z");
  }
  const matching = sandboxes.filter(
    ({ settings, startedAt, state }) =>
      (states.length === 0 || states.includes(state)) &&
      (template === null || settings.templateId === template) &&
      startedAt.getTime() >= startedAfter &&
      metadata.every(([name, value]) => settings.metadata[name] === value),
  );
  const ordered = matching.map((sandbox) => ({ sandbox, id: sandbox.settings.id, at: sandbox.startedAt.getTime() }));
  const { items, ...rest } = pageOf(ordered, query);
  return { ...rest, items: items.map(({ sandbox }) => sandbox) };
}

/** Clients encode a filter as a form, each of its parts once more before. */
function metadataOf(text: string | null): readonly (readonly [string, string])[] {
  try {
    return [...new URLSearchParams(text ?? "")].map(([name, value]) => [
      decodeURIComponent(name),
      decodeURIComponent(value),
    ]);
  } catch {
    throw new E2BFailure(400, "metadata: it is not encoded correctly");
  }
}
