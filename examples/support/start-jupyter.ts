import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { jupyterPythons } from "@fenced/test-support/backends";
import { freePort } from "@fenced/test-support/free-port";

export interface RunningJupyter extends AsyncDisposable {
  readonly baseUrl: string;
  readonly token: string;
  /** Returns the kernels that are running on it. */
  readonly kernels: () => Promise<unknown>;
}

/** Starts a Jupyter server in the working directory like a hub: below a path, and with a token. */
export async function startJupyter(path: string): Promise<RunningJupyter> {
  const [port, token] = [await freePort(), randomUUID()];
  const baseUrl = `http://127.0.0.1:${port}${path}`;
  const settings = { base_url: path, ip: "127.0.0.1", port, port_retries: 0, open_browser: "False" };
  const options = Object.entries(settings).map(([name, value]) => `--ServerApp.${name}=${value}`);
  const server = spawn(jupyterPythons.jupyter, ["-m", "jupyter_server", "--allow-root", ...options], {
    env: { ...process.env, JUPYTER_TOKEN: token, JUPYTER_RUNTIME_DIR: join(process.cwd(), "runtime") },
    stdio: "ignore",
  });
  const exit = once(server, "exit");
  const kernels = async (): Promise<unknown> => {
    const response = await fetch(`${baseUrl}api/kernels`, { headers: { authorization: `token ${token}` } });
    return response.json();
  };
  for (let attempt = 0; !(await kernels().then(Array.isArray, () => false)); attempt++) {
    if (server.exitCode !== null || attempt === 300) throw new Error("The Jupyter server did not start.");
    await sleep(100);
  }
  return {
    baseUrl,
    token,
    kernels,
    async [Symbol.asyncDispose]() {
      server.kill();
      await exit;
    },
  };
}
