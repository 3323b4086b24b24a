import { InvalidInputError } from "@fenced/core";

/** Reads a stream to its end and returns the last item that `isLast` accepts. */
export async function lastItem<Item, Last extends Item>(
  stream: AsyncIterable<Item>,
  isLast: (item: Item) => item is Last,
): Promise<Last> {
  let last: Last | undefined;
  for await (const item of stream) {
    if (isLast(item)) last = item;
  }
  if (last !== undefined) return last;
  throw new InvalidInputError("The stream ended without its result", {
    remedy: "Make onMessagesStream() yield exactly one AgentResponse, as its last item.",
  });
}
