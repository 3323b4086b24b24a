import { E2BFailure } from "./e2b-failure.ts";

const mostListed = 100;

/** By what pages are ordered: newest first, or oldest first. */
export interface Listed {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/**
 * One page of a list. A page's token says after which item the next one begins, so items that come and go meanwhile neither
 * repeat nor hide others.
 *
 * @throws E2BFailure if the query is wrong.
 */
export function pageOf<T extends Listed>(
  items: readonly T[],
  query: URLSearchParams,
): { readonly items: readonly T[]; readonly next?: string } {
  const limit = limitOf(query.get("limit"));
  const direction = query.get("order") === "asc" ? 1 : -1;
  const compare = (one: Listed, other: Listed): number =>
    direction * (one.at - other.at || (one.id < other.id ? -1 : Number(one.id > other.id)));
  const token = query.get("nextToken");
  const after = token === null || token === "" ? undefined : readToken(token);
  const rest = items.filter((item) => !after || compare(item, after) > 0).toSorted(compare);
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  return { items: page, ...(last && rest.length > limit && { next: tokenOf(last) }) };
}

function limitOf(text: string | null): number {
  if (text === null || text === "") return mostListed;
  if (!/^\d{1,9}$/.test(text)) throw new E2BFailure(400, "limit: it must be a whole number");
  // Pages of nothing would have no end.
  if (Number(text) === 0) throw new E2BFailure(400, "limit: it must be at least 1");
  return Math.min(Number(text), mostListed);
}

function tokenOf({ at, id }: Listed): string {
  return Buffer.from(`${at} ${id}`).toString("base64url");
}

function readToken(token: string): Listed {
  const [, at, id] = /^(\d{1,16}) (\w{1,100})$/.exec(Buffer.from(token, "base64url").toString()) ?? [];
  if (at === undefined || id === undefined) throw new E2BFailure(400, "nextToken: it is not one of this server");
  return { at: Number(at), id };
}
