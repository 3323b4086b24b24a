import { E2BFailure } from "./e2b-failure.ts";
import type { Sandbox } from "./sandbox.ts";

const mostListed = 100;

/**
 * Chooses the sandboxes that a query asks for, newest first.
 *
 * @throws E2BFailure if the query is wrong.
 */
export function listed(
  sandboxes: readonly Sandbox[],
  query: URLSearchParams,
): { readonly items: readonly Sandbox[]; readonly next?: string } {
  const metadata = metadataOf(query.get("metadata"));
  const states = query.getAll("state").flatMap((text) => text.split(","));
  const template = query.get("template");
  const startedAfter = Date.parse(query.get("startedAfter") ?? "1970-01-01T00:00:00Z");
  if (Number.isNaN(startedAfter)) {
    throw new E2BFailure(400, "startedAfter: it must be a time such as 2026-01-01T00:00:00Z");
  }
  const limit = numberOf(query.get("limit") ?? String(mostListed), "limit");
  // Pages of nothing would have no end.
  if (limit === 0) throw new E2BFailure(400, "limit: it must be at least 1");
  const from = numberOf(query.get("nextToken") ?? "0", "nextToken");
  const matching = sandboxes
    .filter(
      ({ settings, startedAt }) =>
        (states.length === 0 || states.includes("running")) &&
        (template === null || settings.templateId === template) &&
        startedAt.getTime() >= startedAfter &&
        metadata.every(([name, value]) => settings.metadata[name] === value),
    )
    .toSorted((one, other) => other.startedAt.getTime() - one.startedAt.getTime());
  if (query.get("order") === "asc") matching.reverse();
  const to = from + Math.min(limit, mostListed);
  return { items: matching.slice(from, to), ...(to < matching.length && { next: String(to) }) };
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

function numberOf(text: string, name: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new E2BFailure(400, `${name}: it must be a whole number`);
}
