import type { PullProgress } from "@fenced/executor-docker";

const width = 30;

/** Where progress is shown. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Shows the progress of an image's download in one line of a terminal; without a terminal, only reports that it has started. */
export function pullProgress(output: ProgressOutput): (progress: PullProgress) => void {
  const layers = new Map<string, { readonly current: number; readonly total: number }>();
  let begun = false;
  return ({ image, status, layer, current, total }) => {
    if (!begun) output.write(`Downloading the image ${image}, once.\n`);
    begun = true;
    if (output.isTTY !== true || status !== "Downloading") return;
    if (layer === undefined || current === undefined || total === undefined || total === 0) return;
    layers.set(layer, { current, total });
    const sums = [...layers.values()];
    const done = sums.reduce((sum, each) => sum + each.current, 0);
    const all = sums.reduce((sum, each) => sum + each.total, 0);
    output.write(bar(done, all));
    if (done === all) output.write("\n");
  };
}

/** One line that overwrites itself. */
export function bar(done: number, all: number): string {
  const share = Math.min(1, done / all);
  const filled = Math.round(share * width);
  const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);
  const text = `${"#".repeat(filled)}${".".repeat(width - filled)} ${megabytes(done)} of ${megabytes(all)} MB`;
  return `\r${text.padEnd(width + 24)}`;
}
