import { InvalidInputError } from "@fenced/core";
import { optionsSchema, stringsOption, type OptionSchemas } from "@fenced/core/options";
import { z } from "zod";

/** The address and credentials of a running Jupyter server, kernel gateway or Enterprise Gateway. */
export interface ServerSettings {
  /** Its address, `http:` or `https:`, with its path prefix: `https://hub.example.org/user/me/`. */
  readonly baseUrl: string;
  /** Its token; sent in the `Authorization` header only. Default: none. */
  readonly token?: string;
  /** More headers for every request and for the WebSocket; they override the token's. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Certificates, in PEM, of the authorities to trust instead of Node's. */
  readonly ca?: string | readonly string[];
  /**
   * Do not offer the WebSocket subprotocol `v1.kernel.websocket.jupyter.org`. Needed if a server accepts it although
   * the gateway behind it does not speak it. Default: false.
   */
  readonly legacyWebSocket?: boolean;
}

/** Checks the settings. */
export const serverSettings: z.ZodType<ServerSettings> = optionsSchema({
  baseUrl: z.string(),
  token: z.string().exactOptional(),
  headers: stringsOption.exactOptional(),
  ca: z.union([z.string(), z.array(z.string())]).exactOptional(),
  legacyWebSocket: z.boolean().exactOptional(),
} satisfies OptionSchemas<ServerSettings>);

/** Checked server settings, as a client uses them. */
export interface ServerAddress {
  /** Ends with `/` and contains no token. */
  readonly baseUrl: string;
  /** Headers of every request and of the WebSocket, including the token's. */
  readonly headers: Readonly<Record<string, string>>;
  /** See `ServerSettings.ca`. */
  readonly ca?: readonly string[];
  /** See `ServerSettings.legacyWebSocket`. */
  readonly legacyWebSocket: boolean;
}

/** @throws InvalidInputError if the address is invalid, or contains a user name and password. */
export function serverAddress(settings: ServerSettings): ServerAddress {
  const url = parseUrl(settings.baseUrl);
  // Jupyter prints its address with the token in it, and people copy it.
  const token = settings.token ?? url.searchParams.get("token") ?? "";
  const path = url.pathname.replace(/\/(?:lab|tree)?\/?$/, "/");
  const { ca } = settings;
  return {
    baseUrl: `${url.origin}${path}`,
    headers: { ...(token === "" ? {} : { Authorization: `token ${token}` }), ...settings.headers },
    ...(ca === undefined ? {} : { ca: typeof ca === "string" ? [ca] : ca }),
    legacyWebSocket: settings.legacyWebSocket ?? false,
  };
}

function parseUrl(baseUrl: string): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "") return url;
  // The error does not show the address: it may contain a password.
  throw new InvalidInputError("The server's `baseUrl` is not a usable URL", {
    remedy: "Use a URL like https://host:8888/prefix/ without user name and password, and pass the token as `token`.",
  });
}
