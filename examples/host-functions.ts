// Lets code in a container without a network call functions of this program, and asks before each call.
// needs: docker
import assert from "node:assert/strict";
// #region host-functions
import { hostFunction } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import * as z from "zod";
// #endregion

Object.assign(process.env, { SANDBOX_IMAGE: "fenced-test:python" });

// #region host-functions
const stock = new Map([
  ["apples", 12],
  ["pears", 0],
]);
const countStock = hostFunction({
  name: "count_stock",
  description: "How many pieces of an article there are.",
  input: z.object({ article: z.string().describe("The article's name, in the plural.") }),
  output: z.object({ pieces: z.int() }),
  // Runs here, with everything this program can access: databases, credentials, the network.
  execute: ({ article }) => {
    const pieces = stock.get(article);
    if (pieces === undefined) throw new RangeError(`There is no article ${article}`);
    return { pieces };
  },
});

await using executor = new DockerCommandLineCodeExecutor({
  image: process.env.SANDBOX_IMAGE ?? "python:3-slim",
  network: "none",
  functions: [countStock],
  approveHostCall: ({ name, input }) => {
    console.log(`${name} is called with ${JSON.stringify(input)}`);
    return { approved: true }; // or ask someone: the program waits
  },
});
await executor.start(); // now it knows which languages the image has
console.log(executor.formatFunctionsForPrompt()); // tells a model what it can import, with types

const code = `
from functions import count_stock, HostFunctionError

for article in ("apples", "pears", "plums"):
    try:
        print(article, count_stock(article=article)["pieces"])
    except HostFunctionError as error:
        print(error)
`;
const result = await executor.executeCodeBlocks([{ language: "python", code }]);
console.log(result.output);
// #endregion

assert.equal(result.output, "apples 12\npears 0\nRangeError: There is no article plums\n");
assert.match(executor.formatFunctionsForPrompt(), /def count_stock\(article: str\) -> CountStockResult:/);
