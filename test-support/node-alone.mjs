/** A machine with Node alone, made from this one by what programs can find. */
import { createHash } from "node:crypto";
import { accessSync, constants, mkdirSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";

/** What every Unix has beside Node and npm. A program that is missing on this machine is missing there, too. */
const programs =
  "node npm npx sh cat ls cp mv rm mkdir rmdir mkfifo ln chmod chown touch head tail sort uniq wc tr cut sed grep awk find " +
  "xargs env id uname date sleep true false test expr basename dirname readlink realpath mktemp tee printf echo pwd ps kill " +
  "tar gzip dd stat df du od seq timeout nice nohup sync";

/**
 * A folder with links to the programs of such a machine, to be its `PATH`: no Docker, Podman, bubblewrap, Python, bash, git, ssh,
 * openssl or Jupyter. It is reused, and not removed here.
 *
 * @param {string} parent - Where to make it.
 * @param {string} path - The `PATH` of this machine.
 */
export function folderOfNodeAlone(parent, path) {
  const found = programs.split(" ").flatMap((name) => {
    // Links of version managers look at the name that they are called by.
    const file = name === "node" ? process.execPath : locate(name, path);
    return file === undefined ? [] : [{ name, file }];
  });
  const key = createHash("sha256").update(JSON.stringify(found)).digest("hex").slice(0, 16);
  const folder = join(parent, `node-alone-${key}`);
  mkdirSync(folder, { recursive: true });
  for (const { name, file } of found) {
    try {
      symlinkSync(file, join(folder, name));
    } catch (error) {
      // An earlier run, or another process, has made it.
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    }
  }
  return folder;
}

/**
 * The variables by which programs find more than a `PATH` shows; `undefined`: not set. Nobody listens on that port, and sockets of
 * daemons are found without it.
 *
 * @type {Readonly<Record<string, string | undefined>>}
 */
export const variablesOfNodeAlone = {
  DOCKER_HOST: "tcp://127.0.0.1:9",
  DOCKER_CONTEXT: undefined,
  KUBECONFIG: undefined,
  VIRTUAL_ENV: undefined,
};

/**
 * @param {string} name
 * @param {string} path
 */
function locate(name, path) {
  return path
    .split(delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
