import { readFileSync } from "node:fs";
import { dataFile } from "../src/default-task.ts";

interface Penguin {
  readonly Species: string;
  readonly Sex: string | null;
  readonly "Body Mass (g)": number | null;
}

/** By how much the males of a species outweigh the females. */
export interface Difference {
  readonly species: string;
  readonly grams: number;
  readonly percent: number;
}

/** The differences of all species, the largest percentage first: the answer to the demo's question, computed in another way. */
export function differences(): Difference[] {
  const penguins = JSON.parse(readFileSync(dataFile, "utf8")) as Penguin[];
  const totals = new Map<string, { males: number; maleGrams: number; females: number; femaleGrams: number }>();
  for (const { Species, Sex, "Body Mass (g)": grams } of penguins) {
    const total = totals.get(Species) ?? { males: 0, maleGrams: 0, females: 0, femaleGrams: 0 };
    if (Sex === "MALE") Object.assign(total, { males: total.males + 1, maleGrams: total.maleGrams + (grams ?? NaN) });
    if (Sex === "FEMALE") {
      Object.assign(total, { females: total.females + 1, femaleGrams: total.femaleGrams + (grams ?? NaN) });
    }
    totals.set(Species, total);
  }
  return Array.from(totals, ([species, total]) => {
    const male = total.maleGrams / total.males;
    const female = total.femaleGrams / total.females;
    return { species, grams: male - female, percent: (100 * (male - female)) / female };
  }).toSorted((one, other) => other.percent - one.percent);
}
