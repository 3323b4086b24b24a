import { randomUUID } from "node:crypto";
import { type BackendFiles, type BlockRun, blockSource, type PlaceLanguages } from "@fenced/executor-kit";
import type { BlockFile, Supervisor, SupervisedPlace } from "@fenced/executor-kit/supervisor";
import { workspacePath } from "./pod-manifest.ts";
import type { RunningPod } from "./running-pod.ts";

/** What a pod offers to blocks. */
interface PodEquipment {
  readonly languages: PlaceLanguages;
  readonly files: BackendFiles;
  /** Prefix of the names of our own files in the workspace. */
  readonly filePrefix: string;
  readonly cleanupTempFiles: boolean;
  /** Variables that tell programs where the proxy is, if there is one. */
  readonly networkVariables: Readonly<Record<string, string>>;
}

/** A pod, with everything that blocks find in it. */
export class PodPlace implements SupervisedPlace {
  readonly pod: RunningPod;
  readonly runner: Supervisor;
  readonly languages: PlaceLanguages;
  readonly files: BackendFiles;
  readonly #equipment: PodEquipment;

  constructor(pod: RunningPod, equipment: PodEquipment) {
    this.pod = pod;
    this.runner = pod.supervisor;
    this.languages = equipment.languages;
    this.files = equipment.files;
    this.#equipment = equipment;
  }

  get lost(): Error | undefined {
    return this.pod.lost;
  }

  /** The given variables override those that tell programs where the proxy is. */
  variables(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    return { ...this.#equipment.networkVariables, ...given };
  }

  /** Sends our own files together with the program, which saves a request; the supervisor removes them again. */
  async writeBlock({ language, code, filename }: BlockRun, extension: string): Promise<BlockFile> {
    const content = blockSource(language, code);
    if (filename !== undefined) {
      await this.files.write(filename, content);
      return { path: `${workspacePath}/${filename}` };
    }
    const { filePrefix, cleanupTempFiles } = this.#equipment;
    const name = `${filePrefix}${randomUUID().slice(0, 12)}.${extension}`;
    return { path: `${workspacePath}/${name}`, sent: { name, content, keep: !cleanupTempFiles } };
  }

  async settle(): Promise<undefined> {
    // The supervisor has removed the block's file.
  }

  whenLost(action: (reason: string) => void): void {
    this.pod.whenLost(action);
  }

  end(): Promise<void> {
    return this.pod.end();
  }
}
