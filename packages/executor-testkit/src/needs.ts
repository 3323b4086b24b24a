import type { FileFeature, RunUsageFigure } from "@fenced/core";
import type { Need } from "./conformance-case.ts";
import type { ChildKind, FixtureLanguage } from "./languages/fixture-language.ts";

/** Every block is a separate process, so the suite can control what it reads and writes byte by byte. */
export const processes: Need = ({ capabilities }) =>
  capabilities.stateful ? "stateful: a block is not a separate process" : undefined;

/** Programs can be started alongside blocks. */
export const startsPrograms: Need = ({ capabilities }) =>
  capabilities.processes === true ? undefined : "capabilities.processes is not true";

/** Programs alongside blocks can run on a terminal. */
export const hasTerminals: Need = ({ capabilities }) =>
  capabilities.terminals === true ? undefined : "capabilities.terminals is not true";

/** They cannot. */
export const lacksTerminals: Need = (kit) =>
  startsPrograms(kit) ?? (kit.capabilities.terminals === true ? "capabilities.terminals is true" : undefined);

/** This host reaches ports on which programs alongside blocks listen. */
export const hasAddresses: Need = ({ capabilities }) =>
  capabilities.addresses === true ? undefined : "capabilities.addresses is not true";

/** It does not. */
export const lacksAddresses: Need = (kit) =>
  startsPrograms(kit) ?? (kit.capabilities.addresses === true ? "capabilities.addresses is true" : undefined);

/** The executor learns the process ids of programs alongside blocks. */
export const learnsIds: Need = (kit) =>
  startsPrograms(kit) ??
  (kit.capabilities.isolation === "container" && kit.capabilities.terminals !== true
    ? "a container without Python does not tell process ids"
    : undefined);

/** `files` can do something that not all can. */
export const fileFeature =
  (name: FileFeature): Need =>
  ({ capabilities }) =>
    capabilities.files?.includes(name) === true ? undefined : `capabilities.files has no "${name}"`;

/** Results have a figure of what their blocks used. */
export const knowsUsage =
  (figure: RunUsageFigure): Need =>
  ({ capabilities }) =>
    capabilities.usage?.includes(figure) === true ? undefined : `capabilities.usage has no "${figure}"`;

/** Variables survive from block to block. */
export const stateful: Need = ({ capabilities }) => (capabilities.stateful ? undefined : "not stateful");

/** Blocks can show rich output. */
export const displays: Need = ({ capabilities }) =>
  capabilities.displays ? undefined : "capabilities.displays is false";

/** Blocks can read standard input. */
export const stdin: Need = ({ capabilities }) => (capabilities.stdin ? undefined : "capabilities.stdin is false");

/** Output arrives while the program runs, and can be held back like a pipe's. */
export const live: Need = ({ capabilities, subject }) =>
  capabilities.isolation === "remote" && subject.live !== true
    ? 'isolation is "remote": output may come when the block has ended'
    : undefined;

/** The loss of the place is noticed at once, although nothing runs there. */
export const connected: Need = (kit) =>
  live(kit) ??
  (kit.subject.asksOnly === true ? "nothing is connected to the place while no block runs (`asksOnly`)" : undefined);

/** The place where code runs can be killed. */
export const breakable: Need = ({ subject }) =>
  subject.breakPlace ? undefined : "the subject does not say how to kill the place where the code runs (`breakPlace`)";

/** A process that a block leaves running can keep printing. */
export const keepsOutput: Need = ({ subject }) =>
  subject.closesOutput === true ? "the backend closes the output of a process that outlives its block" : undefined;

/** The backend reports when a program closes its input. */
export const seesClosedInput: Need = ({ subject }) =>
  subject.keepsInputOpen === true ? "the backend does not report when a program closes its input" : undefined;

/** The block is in a file on this host, which `codeFile` names. */
export const codeFile: Need = ({ capabilities }) => {
  if (capabilities.stateful) return "stateful: blocks are not started from files";
  return capabilities.isolation === "remote" ? 'isolation is "remote": blocks are files on another host' : undefined;
};

/** A block can be ended without ending its session and everything else that runs there. */
export const staysInSession: Need = ({ capabilities }) =>
  capabilities.isolation === "remote" && capabilities.stateful
    ? 'isolation is "remote": ending a block may end the session, too'
    : undefined;

/** Processes of the blocks are processes of this host. */
export const onHost: Need = ({ capabilities }) =>
  capabilities.isolation === "none" ? undefined : `isolation is "${capabilities.isolation}"`;

/** The workspace can be a directory of this host. */
export const workDir: Need = ({ subject }) => (subject.takesWorkDir ? undefined : "the executor has no option workDir");

/** Changes that a program makes to its files can be seen on this host without the executor. */
export const visibleOnHost: Need = (kit) =>
  onHost(kit) === undefined || kit.subject.takesWorkDir
    ? undefined
    : "this host cannot see what a block does without the executor";

/** The executor runs a language. */
export const language =
  (name: string): Need =>
  ({ capabilities }) =>
    capabilities.languages.includes(name) ? undefined : `capabilities.languages has no "${name}"`;

/** The executor offers functions in a language. */
export const functionsIn =
  (name: string): Need =>
  ({ capabilities }) =>
    capabilities.functions.includes(name) ? undefined : `capabilities.functions has no "${name}"`;

/** Programs in a language can call host functions. */
export const hostFunctionsIn =
  (name: string): Need =>
  ({ capabilities }) =>
    capabilities.hostFunctions.includes(name) ? undefined : `capabilities.hostFunctions has no "${name}"`;

/** The fixture language has a statement. */
export const statement =
  (name: keyof FixtureLanguage): Need =>
  (kit) =>
    kit.language[name] === undefined ? `there is no fixture program for "${name}" in ${kit.language.name}` : undefined;

/** Blocks can start processes. */
export const startsProcesses: Need = ({ capabilities }) =>
  capabilities.isolation === "wasm" ? 'isolation is "wasm": there are no processes' : undefined;

/** The file system has named pipes and sockets. */
export const specialFiles: Need = ({ capabilities }) =>
  capabilities.isolation === "wasm" ? 'isolation is "wasm": there are no named pipes and sockets' : undefined;

/** File contents are not in this process's memory. */
export const filesElsewhere: Need = ({ capabilities }) =>
  capabilities.isolation === "wasm" ? 'isolation is "wasm": the files are in this process\'s memory' : undefined;

/** The fixture programs can start a process in a given way. */
export const childKind =
  (kind: ChildKind): Need =>
  (kit) =>
    startsProcesses(kit) ??
    (kit.language.childKinds.includes(kind) ? undefined : `${kit.language.name} cannot start a "${kind}"`);

/** A session can outlive its program. */
export const keepsAlive: Need = ({ subject }) =>
  subject.connect ? undefined : "the subject does not say how to connect to a session (`connect`)";

/** Submitted runs go on without a program. */
export const keepsRuns: Need = (kit) =>
  keepsAlive(kit) ?? (kit.subject.runsEnd === true ? "submitted runs end with their program (`runsEnd`)" : undefined);
