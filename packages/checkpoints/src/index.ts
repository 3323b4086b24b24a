export { type CheckpointChanges, changesBetween } from "./changes-between.ts";
export { directoryStore } from "./directory/directory-store.ts";
