// Runs blocks in a sandbox of E2B or of any service that speaks its protocol; here, of a server in this process.
// needs: python3, bubblewrap
import assert from "node:assert/strict";
// #region executor
import { E2BCodeExecutor } from "@fenced/e2b";
// #endregion
import { startE2BService } from "./support/e2b-service.ts";

await using _ = await startE2BService();

// #region executor
const executor = new E2BCodeExecutor({ template: "base" }); // the key is in E2B_API_KEY
await executor.files.write("numbers.txt", "1 2 3");
const result = await executor.executeCodeBlocks([
  { language: "python", code: "print(sum(map(int, open('numbers.txt').read().split())))" },
]);
console.log(result.output); // 6
await executor.stop(); // kills the sandbox
// #endregion

assert.equal(result.output, "6\n");
