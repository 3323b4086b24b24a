import { docker } from "./docker-cli.ts";
import { pythonImage } from "./images.ts";

/** Starts a container that no executor created; it has no network, and sleeps. */
export async function startForeignContainer(
  name: string,
  { image = pythonImage, options = [] }: { readonly image?: string; readonly options?: readonly string[] } = {},
): Promise<void> {
  const words = ["--init", "--name", name, "--network", "none", ...options, image, "sleep", "1000"];
  await docker("run", "--detach", ...words);
}
