import { closestMatch } from "leven";

/** The known name closest to a misspelled one: `nework`, `work_dir`, `timeout` -> `timeoutMs`. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const meant = plain(name);
  return (
    known.find((each) => plain(each) === meant) ??
    known.find((each) => stem(each) === stem(name)) ??
    closestMatch(name, known, { maxDistance: Math.max(1, Math.floor(name.length / 3)) })
  );
}

/** A name without differences of style: `work_dir`, `WorkDir` and `workdir` are the same. */
function plain(name: string): string {
  return name.replaceAll(/[_-]/g, "").toLowerCase();
}

/** A name without its unit: `timeout`, `timeoutMs` and `timeoutSeconds` are the same. */
function stem(name: string): string {
  return plain(name).replace(/(?:ms|millis|milliseconds|s|sec|seconds|bytes|[kmg]b|[kmg]ib)$/, "");
}
