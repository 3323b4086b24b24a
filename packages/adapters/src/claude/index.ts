export { fencedToolset, type FencedToolset, type FencedToolsetOptions } from "./fenced-toolset.ts";
