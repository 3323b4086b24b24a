export { fencedSandboxClient, type FencedSandboxClient } from "./fenced-sandbox-client.ts";
export type { FencedSandboxSession } from "./fenced-sandbox-session.ts";
export type { FencedSandboxState } from "./fenced-sandbox-state.ts";
