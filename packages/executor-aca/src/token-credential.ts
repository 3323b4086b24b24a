import { BackendUnavailableError, InvalidInputError } from "@fenced/core";

/** The scope of the service's tokens. */
export const tokenScope = "https://dynamicsessions.io/.default";

/** Anything that provides tokens: any credential of `@azure/identity`, or an object with this one method. */
export interface AccessTokenSource {
  /**
   * Called for each request: the source caches tokens, and renews them before they expire.
   *
   * @param scope - `https://dynamicsessions.io/.default`.
   */
  getToken(scope: string, options?: { readonly abortSignal?: AbortSignal }): Promise<{ readonly token: string } | null>;
}

/**
 * A source that always returns the same token, for tests and for set-ups in which something else renews it.
 *
 * @example
 * new ACADynamicSessionsCodeExecutor({ poolManagementEndpoint, credential: staticToken(process.env.MY_TOKEN) });
 *
 * @throws InvalidInputError if the token is empty.
 */
export function staticToken(token: string | undefined): AccessTokenSource {
  if (token !== undefined && token !== "") return { getToken: async () => ({ token }) };
  throw new InvalidInputError("The static token is empty", { remedy: "Pass the text of a bearer token." });
}

/** A source that reads an environment variable of this process each time. */
export function tokenFromVariable(name: string): AccessTokenSource {
  return {
    getToken: async () => {
      const token = process.env[name];
      if (token !== undefined && token !== "") return { token };
      throw new BackendUnavailableError(`The environment variable ${name} does not contain a token`, {
        remedy: "Set it to a bearer token for https://dynamicsessions.io, or leave `tokenVariable` out.",
      });
    },
  };
}

/** Azure's default credential, loaded with the first token. */
export function defaultCredential(): AccessTokenSource {
  let loaded: Promise<AccessTokenSource> | undefined;
  return {
    getToken: async (scope, options) => {
      loaded ??= loadDefaultCredential();
      return (await loaded).getToken(scope, options);
    },
  };
}

async function loadDefaultCredential(): Promise<AccessTokenSource> {
  const identity = await import("@azure/identity").catch((cause: unknown) => {
    throw new BackendUnavailableError(
      "No `credential` is set, and @azure/identity, which provides the default one, could not be loaded",
      {
        remedy: "Run `npm install @azure/identity`, or set `credential`.",
        cause,
      },
    );
  });
  return new identity.DefaultAzureCredential();
}
