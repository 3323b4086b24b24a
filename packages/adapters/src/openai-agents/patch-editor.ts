import { FileNotFoundError } from "@fenced/core";
import { applyDiff, type ApplyPatchOperation, type ApplyPatchResult, type Editor } from "@openai/agents-core";
import {
  SandboxApplyPatchDecodeError,
  SandboxApplyPatchDiffError,
  SandboxApplyPatchFileNotFoundError,
  SandboxApplyPatchPathError,
} from "@openai/agents-core/sandbox";
import type { ExecutorSandbox } from "../executor-sandbox.ts";

/** Code may have made the file, and a patch is looked for in all of its lines. */
const maxPatchedBytes = 4_194_304;

type Operation<T extends ApplyPatchOperation["type"]> = Extract<ApplyPatchOperation, { readonly type: T }>;

/** Applies a model's patches to files of a sandbox. */
export class PatchEditor implements Editor {
  readonly #sandbox: ExecutorSandbox;

  constructor(sandbox: ExecutorSandbox) {
    this.#sandbox = sandbox;
  }

  async createFile({ path, diff }: Operation<"create_file">): Promise<ApplyPatchResult> {
    await this.#files.write(this.#sandbox.fileAt(path), patched("", diff, "create"));
    return {};
  }

  async updateFile({ path, diff, moveTo }: Operation<"update_file">): Promise<ApplyPatchResult> {
    const from = this.#sandbox.fileAt(path);
    const to = this.#sandbox.fileAt(moveTo ?? path);
    const { mode } = await this.#look(path);
    const text = patched(await this.#read(path), diff);
    await this.#files.write(to, text, to === from || mode === undefined ? {} : { mode });
    if (to !== from) await this.#files.remove(from);
    return {};
  }

  async deleteFile({ path }: Operation<"delete_file">): Promise<ApplyPatchResult> {
    await this.#look(path);
    await this.#files.remove(this.#sandbox.fileAt(path));
    return {};
  }

  get #files(): ExecutorSandbox["executor"]["files"] {
    return this.#sandbox.executor.files;
  }

  /** A patch is about one file: a directory would be removed with everything in it. */
  async #look(path: string): Promise<{ readonly mode?: number }> {
    const found = await this.#files.stat(this.#sandbox.fileAt(path)).catch((cause: unknown) => {
      if (!(cause instanceof FileNotFoundError)) throw cause;
      throw new SandboxApplyPatchFileNotFoundError(`There is no file ${JSON.stringify(path)}.`, { cause });
    });
    if (found.type !== "file") throw new SandboxApplyPatchPathError(`${JSON.stringify(path)} is not a file.`);
    return found;
  }

  async #read(path: string): Promise<string> {
    const bytes = await this.#sandbox.readStart(path, maxPatchedBytes + 1);
    if (bytes.length > maxPatchedBytes) {
      throw new SandboxApplyPatchPathError(
        `${JSON.stringify(path)} has more than ${maxPatchedBytes} bytes. Change it with a command.`,
      );
    }
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch (cause) {
      throw new SandboxApplyPatchDecodeError(`${JSON.stringify(path)} is not UTF-8 text.`, { cause });
    }
  }
}

function patched(text: string, diff: string, mode: "default" | "create" = "default"): string {
  try {
    return applyDiff(text, diff, mode);
  } catch (cause) {
    throw new SandboxApplyPatchDiffError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}
