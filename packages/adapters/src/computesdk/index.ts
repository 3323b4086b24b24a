export { fencedCompute, type FencedCompute } from "./fenced-compute.ts";
