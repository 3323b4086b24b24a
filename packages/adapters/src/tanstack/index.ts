export { fencedProvider, type FencedProvider } from "./fenced-provider.ts";
