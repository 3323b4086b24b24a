import type { ServerAddress } from "../../src/index.ts";

/** Another client of a server. */
export class KernelApi {
  readonly #address: ServerAddress;

  constructor(address: ServerAddress) {
    this.#address = address;
  }

  async list(): Promise<string[]> {
    const kernels = (await (await this.#send("GET", "")).json()) as { id: string }[];
    return kernels.map(({ id }) => id);
  }

  async start(name = "python3"): Promise<string> {
    const kernel = (await (await this.#send("POST", "", { name })).json()) as { id: string };
    return kernel.id;
  }

  async remove(id: string): Promise<void> {
    await this.#send("DELETE", `/${id}`);
  }

  async restart(id: string): Promise<void> {
    await this.#send("POST", `/${id}/restart`, {});
  }

  async #send(method: string, path: string, json?: object): Promise<Response> {
    return fetch(`${this.#address.baseUrl}api/kernels${path}`, {
      method,
      headers: this.#address.headers,
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
  }
}
