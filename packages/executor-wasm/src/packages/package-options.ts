import * as z from "zod";

/** Python packages that blocks can import. */
export interface WasmPackages {
  /**
   * Packages to install before the first block, together with their dependencies: names with an optional version, as for
   * pip (`"attrs"`, `"pandas>=2,<4"`, `"rich[jupyter]"`).
   */
  readonly install?: readonly string[];
  /**
   * Absolute path of a folder with wheels (`.whl`), such as an unpacked release of Pyodide or the output of `pip
   * download`. Wheels must be plain Python (`py3-none-any`) or compiled for this interpreter
   * (`cp314-cp314-pyemscripten_2026_0_wasm32`).
   */
  readonly wheels?: string;
  /**
   * URL of a package index, such as `https://pypi.org/simple`; this program fetches wheels from there and nowhere else.
   * Wheels for which the index gives no SHA-256 are refused.
   */
  readonly index?: string;
  /**
   * Other origins that may host the index's files, besides its own. Default: none, but for `https://pypi.org`:
   * `https://files.pythonhosted.org`.
   */
  readonly fileOrigins?: readonly string[];
  /**
   * Let blocks install more packages from the folder and the index with `await micropip.install("name")`. The index
   * sees what they ask for, so hostile code can leak data to it. Default: false.
   */
  readonly installFromCode?: boolean;
}

const httpUrl = z.url({ protocol: /^https?$/ });
const noSecrets = (value: string): boolean => {
  const { username, password, search, hash } = new URL(value);
  return `${username}${password}${search}${hash}` === "";
};

/** Validates the options. */
export const wasmPackages: z.ZodType<WasmPackages> = z
  .strictObject({
    install: z.array(z.string().min(1).max(1000)).min(1).max(200).exactOptional(),
    wheels: z
      .string()
      .regex(/^(?:\/|[A-Za-z]:[\\/])/, "must be an absolute path")
      .exactOptional(),
    index: httpUrl.refine(noSecrets, "must have no user name, password or query").exactOptional(),
    fileOrigins: z
      .array(httpUrl.refine((value) => new URL(value).origin === value, "must be an origin, like https://example.com"))
      .exactOptional(),
    installFromCode: z.boolean().exactOptional(),
  })
  .superRefine(({ install, wheels, index, fileOrigins, installFromCode }, context) => {
    const refuse = (message: string): void => context.addIssue({ code: "custom", message });
    if (wheels === undefined && index === undefined) refuse("needs `wheels` or `index` to find packages in");
    if (install === undefined && installFromCode !== true) refuse("needs `install` or `installFromCode`");
    if (fileOrigins !== undefined && index === undefined) refuse("has `fileOrigins`, which needs `index`");
  });
