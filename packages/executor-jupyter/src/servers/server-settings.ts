import { randomBytes } from "node:crypto";
import { InvalidInputError } from "@fenced/core";
import { optionsSchema, stringsOption, type OptionSchemas } from "@fenced/core/options";
import { z } from "zod";

/** The address and credentials of a running Jupyter server, kernel gateway or Enterprise Gateway. */
export interface ServerSettings {
  /**
   * Its address, `http:` or `https:`, with its path prefix: `https://hub.example.org/user/me/`. The address of a page in
   * a browser, such as an open notebook, will do.
   */
  readonly baseUrl: string;
  /** Its token; sent in the `Authorization` header only. Default: the one in `baseUrl`, if any. */
  readonly token?: string | undefined;
  /** The password of a server that has no token. Default: none. */
  readonly password?: string | undefined;
  /** More headers for every request and for the WebSocket; they override the token's. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Certificates, in PEM, of the authorities to trust instead of Node's. */
  readonly ca?: string | readonly string[] | undefined;
  /**
   * Do not offer the WebSocket subprotocol `v1.kernel.websocket.jupyter.org`. Needed if a server accepts it although
   * the gateway behind it does not speak it. Default: false.
   */
  readonly legacyWebSocket?: boolean | undefined;
}

/** The settings that must not be written where others can read them. */
export type ServerSecrets = Pick<ServerSettings, "token" | "password" | "headers">;

const secretSchemas = {
  token: z.string().exactOptional(),
  password: z.string().exactOptional(),
  headers: stringsOption.exactOptional(),
} satisfies OptionSchemas<ServerSecrets>;

/** Checks these. */
export const serverSecrets: z.ZodType<ServerSecrets, ServerSecrets> = z.strictObject({
  ...secretSchemas,
  headers: z.record(z.string(), z.string()).exactOptional(),
});

/** Checks the settings. */
export const serverSettings: z.ZodType<ServerSettings> = optionsSchema({
  baseUrl: z.string(),
  ...secretSchemas,
  ca: z.union([z.string(), z.array(z.string())]).exactOptional(),
  legacyWebSocket: z.boolean().exactOptional(),
} satisfies OptionSchemas<ServerSettings>);

/** Checked server settings, as a client uses them. */
export interface ServerAddress {
  /** Ends with `/` and contains no token. */
  readonly baseUrl: string;
  /** Headers of every request and of the WebSocket, including those that authenticate. */
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
  const { ca } = settings;
  return {
    baseUrl: `${url.origin}${prefixOf(url.pathname)}`,
    headers: {
      ...(token === "" ? crossSiteProof(settings) : { Authorization: `token ${token}` }),
      ...settings.headers,
    },
    ...(ca === undefined ? {} : { ca: typeof ca === "string" ? [ca] : ca }),
    legacyWebSocket: settings.legacyWebSocket ?? false,
  };
}

/** Pages of Jupyter's user interfaces, by the first part of their address below the server's prefix. */
const pages = new Set(["lab", "tree", "notebooks", "nbclassic", "edit", "doc", "consoles", "terminals"]);

/** The path prefix of a server, without the page that was open in a browser; ends with `/`. */
function prefixOf(path: string): string {
  const parts = path.split("/");
  // A user of a Hub may have the name of a page.
  const user = parts.indexOf("user");
  const end = parts.findIndex((part, index) => pages.has(part) && index > (user === -1 ? 0 : user + 1));
  const prefix = (end === -1 ? parts : parts.slice(0, end)).join("/");
  return prefix.endsWith("/") ? prefix : `${prefix}/`;
}

/** What a server that gets no token wants to see: the same secret as a cookie and as a header, which other sites' pages cannot set. */
function crossSiteProof({ headers = {} }: ServerSettings): Record<string, string> {
  if (Object.keys(headers).some((name) => /^(?:authorization|cookie|x-xsrftoken)$/i.test(name))) return {};
  const secret = randomBytes(16).toString("hex");
  return { Cookie: `_xsrf=${secret}`, "X-XSRFToken": secret };
}

function parseUrl(baseUrl: string): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "") return url;
  // The error does not show the address: it may contain a password.
  throw new InvalidInputError("The server's `baseUrl` is not a usable URL", {
    remedy: "Use a URL like https://host:8888/prefix/ without user name and password, and pass the token as `token`.",
  });
}
