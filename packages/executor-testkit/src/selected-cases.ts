import type { ConformanceCase, ConformanceGroup } from "./conformance-case.ts";
import { decidedByTheKit } from "./selection/decided-by-the-kit.ts";
import { decidedByTheSupervisor } from "./selection/decided-by-the-supervisor.ts";
import { smokeCases } from "./selection/smoke-cases.ts";

/** Which cases of the suite run: see `SuiteOptions.cases`. */
export type CaseSelection = "all" | "place" | "connection" | "smoke";

/** Every name in the lists of `selection/`, as `group > case`. A test compares them with the suite. */
export function listedCases(): string[] {
  return [decidedByTheKit, decidedByTheSupervisor, smokeCases].flatMap((list) =>
    Object.entries(list).flatMap(([group, names]) => names.map((name) => `${group} > ${name}`)),
  );
}

/** The cases of a group that run. */
export function selectedCases({ name, cases }: ConformanceGroup, selection: CaseSelection): readonly ConformanceCase[] {
  if (selection === "all") return cases;
  if (selection === "smoke") return cases.filter((each) => smokeCases[name]?.includes(each.name) === true);
  const leftOut = [decidedByTheKit, ...(selection === "connection" ? [decidedByTheSupervisor] : [])];
  return cases.filter((each) => !leftOut.some((list) => list[name]?.includes(each.name) === true));
}
