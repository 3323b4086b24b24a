import {
  findPlaceLanguages,
  programsOf as programsOfTable,
  type LanguageCommand,
  type PlaceLanguages,
} from "@fenced/executor-kit";
import type { ContainerInventory } from "./run/block-runner.ts";

/** A command whose program is in the container. */
export type ContainerLanguage = LanguageCommand;

/** Which languages the container can run, and why not the others. */
export type ContainerLanguages = PlaceLanguages;

/** The programs that have to be looked for in the container. */
export function programsOf(table: Readonly<Record<string, LanguageCommand>>): string[] {
  return [...programsOfTable(table), "rm"];
}

/**
 * Finds the languages of `table` in a container.
 *
 * @param given - languages whose command the user gave; it is taken as it is.
 */
export function findLanguages(
  table: Readonly<Record<string, LanguageCommand>>,
  given: ReadonlySet<string>,
  inventory: ContainerInventory,
  image: string,
): ContainerLanguages {
  return findPlaceLanguages(table, given, inventory, {
    name: `the image ${image}`,
    remedy: "use an image that has it",
  });
}
