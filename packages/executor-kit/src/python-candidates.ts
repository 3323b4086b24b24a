/**
 * The Pythons to try for something that not each of them has, such as Jupyter: that of the active virtual environment,
 * each on the `PATH`, and the system's, which may have what a newer one on the `PATH` lacks. Some may not exist.
 *
 * @param path - the `PATH` to look in.
 */
export function pythonCandidates(path: string): string[] {
  const active = process.env["VIRTUAL_ENV"] ?? "";
  if (process.platform === "win32") {
    return [...(active === "" ? [] : [`${active}\\Scripts\\python.exe`]), "python", "py"];
  }
  const found = path.split(":").flatMap((place) => (place === "" ? [] : [`${place}/python3`]));
  return [...new Set([...(active === "" ? [] : [`${active}/bin/python`]), ...found, "/usr/bin/python3"])];
}
