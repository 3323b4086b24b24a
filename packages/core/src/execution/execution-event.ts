import type { CodeBlock } from "./code-block.ts";
import type { BlockResult, CodeResult } from "./code-result.ts";
import type { Display } from "./display.ts";

/**
 * What happens during a run, as it happens. `index` is the block's place in the list of blocks. A stream ends with
 * exactly one `result`. Text comes whole: a character is never split over two events. The stream carries all output,
 * also what the bounded result leaves out.
 */
export type ExecutionEvent =
  | { readonly type: "block-start"; readonly index: number; readonly block: CodeBlock }
  | { readonly type: "stdout" | "stderr"; readonly index: number; readonly text: string }
  | { readonly type: "display"; readonly index: number; readonly display: Display }
  | { readonly type: "block-end"; readonly index: number; readonly result: BlockResult }
  | { readonly type: "result"; readonly result: CodeResult };
