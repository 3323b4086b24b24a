import { InvalidInputError, verifyRecord } from "@fenced/core";
import { Command } from "commander";

/** `fenced verify-record`. */
export function verifyRecordCommand(): Command {
  return new Command("verify-record")
    .description(
      "Checks that no line of a record of runs (recordFile) was changed, removed or added. Exits with 0 and prints the number of runs and the last hash, or with 1, the line and what is wrong with it.",
    )
    .argument("<file>", "the record")
    .action(async (file: string) => {
      const found = await verifyRecord(file).catch((cause: unknown) => {
        throw unreadable(file, cause);
      });
      if (!found.valid) {
        process.stdout.write(`Line ${found.line}: ${found.reason}\n`);
        process.exitCode = 1;
        return;
      }
      const torn = found.torn.map((line) => `Line ${line} is incomplete: a program died while it wrote it.\n`);
      const count = found.count === 1 ? "1 run" : `${found.count} runs`;
      process.stdout.write(`${torn.join("")}${count}. Last hash: ${found.lastHash}\n`);
    });
}

function unreadable(file: string, cause: unknown): InvalidInputError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new InvalidInputError(`${JSON.stringify(file)} cannot be read: ${reason}`, {
    remedy: "Pass the path of a file that recordFile() has written.",
    cause,
  });
}
