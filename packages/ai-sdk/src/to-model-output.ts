import type { ToolResultPart } from "ai";
import type { CodeExecutionOutput } from "./code-execution-output.ts";

/** Converts a result for the model: its text, followed by the images if the model should see them. */
export function toModelOutput(output: CodeExecutionOutput, imagesToModel: boolean): ToolResultPart["output"] {
  // A stored chat may contain a call that was cut off while it ran.
  if (output.status === "running") {
    return { type: "text", value: `The code did not finish. Its last output was:\n${output.output}` };
  }
  const { text, images } = output;
  if (images.length === 0) return { type: "text", value: text };
  if (!imagesToModel) return { type: "text", value: `${text.trimEnd()}\n\n${shownToUser(images.length)}` };
  return {
    type: "content",
    value: [
      { type: "text", text },
      ...images.map(({ data, mediaType }) => ({ type: "image-data" as const, data, mediaType })),
    ],
  };
}

function shownToUser(count: number): string {
  return `The code showed ${count === 1 ? "1 image" : `${count} images`}, which you cannot see.`;
}
