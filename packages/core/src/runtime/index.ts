export { nodeProgram, type NodeProgram } from "./node-program.ts";
export { findPackage, loadPackage, type PackageSeeker } from "./package-places.ts";
export { homeDirectory } from "./home-directory.ts";
export { onInterruption } from "./interruption.ts";
export { isSameSecret } from "./is-same-secret.ts";
export { nodeListener, standardHeaders } from "./node-listener.ts";
export { makeDirectories, makeDirectoriesSync, type MakeDirectoriesOptions } from "./make-directories.ts";
