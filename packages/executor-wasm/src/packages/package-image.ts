import { ImageCache } from "./image-cache.ts";
import { InstallationError, programs, runInstaller, type InstallerOptions } from "./installer.ts";
import { PackageIndex } from "./package-index.ts";
import type { WasmPackages } from "./package-options.ts";
import { WheelFolder } from "./wheel-folder.ts";

/** What an installation needs to know. */
export interface Installation extends InstallerOptions {
  readonly packages: WasmPackages;
  /** Requirements. */
  readonly install: readonly string[];
}

/**
 * Chooses wheels for requirements, and unpacks them into one file, from which interpreters read packages.
 *
 * @returns a descriptor of the file, for reading.
 * @throws InstallationError if a requirement cannot be met with the folder and the index.
 */
export async function makePackages(installation: Installation, signal: AbortSignal): Promise<number> {
  const { packages, install } = installation;
  await using folder = packages.wheels === undefined ? undefined : await WheelFolder.open(packages.wheels);
  const cache = new ImageCache(installation.cacheDirectory);
  const wheels = [...(folder?.wheels ?? [])];
  const inputs = [packages.wheels, packages.index, packages.fileOrigins, install, wheels, programs];
  const hasIndex = packages.index !== undefined;
  // The contents of an index change, so with one, an image's name depends on the wheels that were chosen.
  let name = cache.nameOf(inputs);
  let present = hasIndex ? undefined : cache.open(name);
  if (present !== undefined) return present;
  const packed = (chosen: readonly string[]): boolean => {
    if (hasIndex) name = cache.nameOf([inputs, chosen]);
    present = cache.open(name);
    return present !== undefined;
  };
  const made = await cache.make(async (image) => {
    const places = { folder, index: hasIndex ? new PackageIndex(packages, signal) : undefined, packed, image };
    await runInstaller(installation, { install, folder: wheels, index: hasIndex }, places, signal);
    return present === undefined ? name : undefined;
  });
  const descriptor = made ?? present;
  if (descriptor === undefined) throw new InstallationError("The file that holds the packages is gone.");
  return descriptor;
}
