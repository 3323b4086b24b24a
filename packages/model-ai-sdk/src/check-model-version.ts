import { InvalidInputError } from "@fenced/core";
import { wrapLanguageModel, type LanguageModel } from "ai";

type ModelOfVersion3 = Extract<LanguageModel, { readonly specificationVersion: "v3" }>;

/** Only its version is read. */
const probe: ModelOfVersion3 = {
  specificationVersion: "v3",
  provider: "fenced",
  modelId: "probe",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("not called")),
  doStream: () => Promise.reject(new Error("not called")),
};

/** @throws InvalidInputError if the model object is newer than the installed AI SDK can call. */
export function checkModelVersion(model: LanguageModel): void {
  if (typeof model === "string") return;
  // A wrapped model has the newest version that the SDK supports: version 3 in AI SDK 6, version 4 in 7.
  const newest = versionOf(wrapLanguageModel({ model: probe, middleware: [] }).specificationVersion);
  const version = versionOf(model.specificationVersion);
  if (version >= 2 && version <= newest) return;
  const what = `The model "${model.modelId}" of ${model.provider} implements version ${model.specificationVersion} of the AI SDK's model interface`;
  throw new InvalidInputError(`${what}, but the installed \`ai\` supports v2 to v${newest}`, {
    remedy:
      version < 2
        ? "Update the provider package."
        : "Update the AI SDK with `npm install ai@latest`, or install the provider's release for your version of `ai`.",
  });
}

function versionOf(name: string): number {
  return Number(/^v(\d+)$/.exec(name)?.[1] ?? 0);
}
