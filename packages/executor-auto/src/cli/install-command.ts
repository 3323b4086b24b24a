import { whereIs } from "./find-program.ts";

/** A tool's name in package managers. */
export interface PackageNames {
  readonly apt?: string;
  readonly dnf?: string;
  readonly brew?: string;
  /** A command that works everywhere. */
  readonly other?: string;
}

/** The command that installs a tool on this machine; `undefined` if none is known. */
export async function installCommand({ apt, dnf, brew, other }: PackageNames): Promise<string | undefined> {
  const asRoot = process.getuid?.() === 0 ? "" : "sudo ";
  if (apt !== undefined && (await whereIs("apt-get")) !== null) return `${asRoot}apt-get install -y ${apt}`;
  if (dnf !== undefined && (await whereIs("dnf")) !== null) return `${asRoot}dnf install -y ${dnf}`;
  if (brew !== undefined && (await whereIs("brew")) !== null) return `brew install ${brew}`;
  return other;
}
