export { fencedProvider } from "./fenced-provider.ts";
