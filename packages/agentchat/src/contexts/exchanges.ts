import type { ModelMessage } from "@fenced/core";

/** Messages that only make sense together: one message, or tool calls with their results. */
export type Exchange = readonly ModelMessage[];

/** Groups messages into exchanges. Leaves out tool results without a preceding call: services reject them. */
export function toExchanges(messages: readonly ModelMessage[]): Exchange[] {
  const exchanges: ModelMessage[][] = [];
  for (const message of messages) {
    const last = exchanges.at(-1);
    if (message.role !== "tool") exchanges.push([message]);
    else if (last !== undefined && asksForTools(last[0])) last.push(message);
  }
  return exchanges;
}

/** The last exchanges that have at most `size` messages together; always at least the very last one. */
export function lastExchanges(exchanges: readonly Exchange[], size: number): Exchange[] {
  const kept: Exchange[] = [];
  let count = 0;
  for (const exchange of exchanges.toReversed()) {
    count += exchange.length;
    if (count > size && kept.length > 0) break;
    kept.unshift(exchange);
  }
  return kept;
}

/** The first exchanges that have at most `size` messages together. */
export function firstExchanges(exchanges: readonly Exchange[], size: number): Exchange[] {
  let count = 0;
  const end = exchanges.findIndex((exchange) => (count += exchange.length) > size);
  return end === -1 ? [...exchanges] : exchanges.slice(0, end);
}

function asksForTools(message: ModelMessage | undefined): boolean {
  return message?.role === "assistant" && typeof message.content !== "string";
}
