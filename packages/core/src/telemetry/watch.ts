import { context } from "@opentelemetry/api";
import type { Operation, OperationDefinition } from "./operation.ts";
import { WatchedOperation } from "./watched-operation.ts";

/**
 * Watches an action, which runs with the operation's span as the active one.
 *
 * @throws what the action throws; the operation is then marked as failed.
 */
export async function watch<T>(
  definition: OperationDefinition,
  action: (operation: Operation) => Promise<T>,
): Promise<T> {
  const operation = new WatchedOperation(definition, context.active());
  try {
    return await operation.within(() => action(operation));
  } catch (error) {
    operation.fail(error);
    throw error;
  } finally {
    operation.end();
  }
}

/**
 * Watches a generator, from the first item that is asked for to its end. Everything in it runs with the operation's span
 * as the active one, whatever the context of the consumer, and that span's parent is the one that is active now. A
 * consumer that leaves ends the operation: it is then marked with `fenced.left_early`, and not as failed.
 *
 * @param report - tells the operation what came of it, before it ends; not called if nobody watches.
 */
export function watchStream<Item, Result>(
  definition: OperationDefinition,
  open: (operation: Operation) => AsyncGenerator<Item, Result, void>,
  report?: (operation: Operation, result: Result) => void,
): AsyncGenerator<Item, Result, void> {
  const parent = context.active();
  return new WatchedStream({ begin: () => new WatchedOperation(definition, parent), open, report });
}

/** How a stream is watched. */
interface StreamWatch<Item, Result> {
  readonly begin: () => WatchedOperation;
  readonly open: (operation: Operation) => AsyncGenerator<Item, Result, void>;
  readonly report: ((operation: Operation, result: Result) => void) | undefined;
}

/** A generator that could not be opened: its first step throws, and so ends the operation. */
// oxlint-disable-next-line require-yield
async function* failed(error: unknown): AsyncGenerator<never, never, void> {
  throw error;
}

class WatchedStream<Item, Result> implements AsyncGenerator<Item, Result, void> {
  readonly #watch: StreamWatch<Item, Result>;
  #items: AsyncGenerator<Item, Result, void> | undefined;
  /** Absent if nobody watches. */
  #operation: WatchedOperation | undefined;
  #unread: IteratorReturnResult<Result> | undefined;
  #left = false;

  constructor(streamWatch: StreamWatch<Item, Result>) {
    this.#watch = streamWatch;
  }

  next(): Promise<IteratorResult<Item, Result>> {
    if (this.#unread) return Promise.resolve(this.#unread);
    const items = (this.#items ??= this.#begin());
    return this.#step(() => items.next());
  }

  async return(value: Result | PromiseLike<Result>): Promise<IteratorResult<Item, Result>> {
    const items = this.#items;
    if (!items) return (this.#unread = { done: true, value: await value });
    this.#leave();
    return this.#step(() => items.return(value));
  }

  throw(error: unknown): Promise<IteratorResult<Item, Result>> {
    const items = (this.#items ??= this.#begin());
    return this.#step(() => items.throw(error));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const items: AsyncIterator<Item, Result, void> | undefined = this.#items;
    if (!items) return;
    this.#leave();
    try {
      await items.return?.();
    } finally {
      this.#operation?.end();
    }
  }

  #begin(): AsyncGenerator<Item, Result, void> {
    const operation = this.#watch.begin();
    if (!operation.isOff) this.#operation = operation;
    try {
      return operation.within(() => this.#watch.open(operation));
    } catch (error) {
      return failed(error);
    }
  }

  #leave(): void {
    this.#left = true;
    this.#operation?.leave();
  }

  #step(ask: () => Promise<IteratorResult<Item, Result>>): Promise<IteratorResult<Item, Result>> {
    const operation = this.#operation;
    return operation ? this.#watchStep(operation, ask) : ask();
  }

  async #watchStep(
    operation: WatchedOperation,
    ask: () => Promise<IteratorResult<Item, Result>>,
  ): Promise<IteratorResult<Item, Result>> {
    try {
      const step = await operation.within(ask);
      if (step.done === true) {
        if (!this.#left) this.#watch.report?.(operation, step.value);
        operation.end();
      }
      return step;
    } catch (error) {
      if (!this.#left) operation.fail(error);
      operation.end();
      throw error;
    }
  }
}
