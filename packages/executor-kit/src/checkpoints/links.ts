import path from "node:path";
import { relativeToWorkspace } from "../workspace/workspace-path.ts";

/** Systems follow only about forty links in a path. */
const mostLinks = 40;
/** How many characters of paths to compare for all links together: code can make links whose targets are long, and lead to each other. */
const mostCharacters = 100_000_000;

/** The symbolic links of a workspace, by path, with their targets as they were written. */
export class Links {
  readonly #targets = new Map<string, string>();
  #left = mostCharacters;

  /** @param workspace - its absolute path, as programs see it, if that is known. */
  constructor(links: Iterable<{ readonly path: string; readonly target: string }>, workspace: string | undefined) {
    for (const { path: link, target } of links) this.#targets.set(link, relativeTarget(link, target, workspace));
  }

  /** The link's target relative to its directory; `undefined` if it leads out of the workspace. */
  targetInside(link: string): string | undefined {
    const target = this.#targets.get(link);
    return target === undefined || this.#leadsOut(link, target) ? undefined : target;
  }

  #leadsOut(link: string, target: string): boolean {
    const at = link.split("/").slice(0, -1);
    const coming = target.split("/").toReversed();
    if (target.startsWith("/")) return true;
    for (let followed = 0; ;) {
      const part = coming.pop();
      if (part === undefined) return false;
      if (part === "" || part === ".") continue;
      if (part === "..") {
        if (at.pop() === undefined) return true;
        continue;
      }
      at.push(part);
      const here = at.join("/");
      this.#left -= here.length;
      if (this.#left < 0) return true;
      const next = this.#targets.get(here);
      if (next === undefined) continue;
      followed += 1;
      // A circle leads nowhere.
      if (followed > mostLinks) return false;
      if (next.startsWith("/")) return true;
      at.pop();
      coming.push(...next.split("/").toReversed());
    }
  }
}

/** An absolute path stays as it is unless it is in the workspace, which has another path elsewhere. */
function relativeTarget(link: string, target: string, workspace: string | undefined): string {
  if (!target.startsWith("/")) return target;
  const inside = relativeToWorkspace(target, workspace);
  return inside === target ? target : path.posix.relative(path.posix.dirname(link), inside) || ".";
}
