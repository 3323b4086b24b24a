import type { FilesApi } from "../api/session-api.ts";
import type { SessionPlace } from "./session-place.ts";

/** The calls for files, each to the session that is there when it is made: one that has expired is replaced first. */
export function lastingFiles(place: SessionPlace, signal?: AbortSignal): FilesApi {
  return {
    hasDirectories: place.current.api.hasDirectories,
    listDirectory: (directory) => place.use((api) => api.listDirectory(directory), signal),
    readFile: (file, own = signal) => place.use((api) => api.readFile(file, own), signal),
    writeFile: (file, content, own = signal) => place.use((api) => api.writeFile(file, content, own), signal),
    removeFile: (file, own = signal) => place.use((api) => api.removeFile(file, own), signal),
  };
}
