import { Context, type ContextSurroundings } from "./context.ts";
import { InterpreterFailure } from "./interpreter-failure.ts";
import { defaultLanguage, findLanguage, firstLanguages, type Language, languageNames } from "./languages.ts";

/** Contexts that a sandbox may have. */
const mostContexts = 64;

/** The contexts of a sandbox, in the order in which they were created. */
export class Contexts {
  readonly #surroundings: ContextSurroundings;
  readonly #contexts = new Map<string, Context>();
  /** Those of code that names no context, by language. */
  readonly #defaults = new Map<Language, Context>();

  constructor(surroundings: ContextSurroundings) {
    this.#surroundings = surroundings;
    for (const language of firstLanguages) this.#default(language);
  }

  get all(): readonly Context[] {
    return [...this.#contexts.values()];
  }

  /**
   * Creates a context, and starts its interpreter.
   *
   * @throws InterpreterFailure if that is not possible.
   */
  async create(language: string | undefined, cwd: string | undefined): Promise<Context> {
    const context = this.#add(known(language), cwd);
    try {
      await context.start();
      return context;
    } catch (error) {
      this.#contexts.delete(context.id);
      throw error;
    }
  }

  /** @throws InterpreterFailure if there is none with this id. */
  find(id: string): Context {
    const context = this.#contexts.get(id);
    if (context) return context;
    throw new InterpreterFailure(404, `Context ${id} not found`);
  }

  /**
   * The context of code that names none.
   *
   * @throws InterpreterFailure if the language is unknown.
   */
  forLanguage(language: string | undefined): Context {
    return this.#default(known(language));
  }

  /** @throws InterpreterFailure if there is none with this id. */
  async remove(id: string): Promise<void> {
    const context = this.find(id);
    this.#contexts.delete(id);
    if (this.#defaults.get(context.language) === context) this.#defaults.delete(context.language);
    await context.remove();
  }

  #default(language: Language): Context {
    const found = this.#defaults.get(language);
    if (found) return found;
    const context = this.#add(language, undefined);
    this.#defaults.set(language, context);
    return context;
  }

  #add(language: Language, cwd: string | undefined): Context {
    if (this.#contexts.size >= mostContexts) {
      throw new InterpreterFailure(
        429,
        `A sandbox has at most ${mostContexts} contexts; remove one that you do not need`,
      );
    }
    const context = new Context(language, cwd ?? this.#surroundings.home ?? ".", this.#surroundings);
    this.#contexts.set(context.id, context);
    return context;
  }
}

/** @throws InterpreterFailure if there is no such language. */
function known(name: string | undefined): Language {
  const language = name === undefined || name === "" ? defaultLanguage : findLanguage(name);
  if (language) return language;
  throw new InterpreterFailure(500, `Unknown language; this server runs ${languageNames()}`);
}
