import { abort } from "./cases/abort.ts";
import { addresses } from "./cases/addresses.ts";
import { archives } from "./cases/archives.ts";
import { blocks } from "./cases/blocks.ts";
import { changes } from "./cases/changes.ts";
import { checkpoint } from "./cases/checkpoint.ts";
import { code } from "./cases/code.ts";
import { component } from "./cases/component.ts";
import { concurrency } from "./cases/concurrency.ts";
import { connectedPrograms } from "./cases/connected-programs.ts";
import { displays } from "./cases/displays.ts";
import { encoding } from "./cases/encoding.ts";
import { environment } from "./cases/environment.ts";
import { fileOperations } from "./cases/file-operations.ts";
import { fileStreams } from "./cases/file-streams.ts";
import { filename } from "./cases/filename.ts";
import { files } from "./cases/files.ts";
import { functionPrompt } from "./cases/function-prompt.ts";
import { hostFunctions } from "./cases/host-functions.ts";
import { hostileFiles } from "./cases/hostile-files.ts";
import { hostileTrees } from "./cases/hostile-trees.ts";
import { javascriptFunctions } from "./cases/javascript-functions.ts";
import { keepAlive } from "./cases/keep-alive.ts";
import { keptRuns } from "./cases/kept-runs.ts";
import { languages } from "./cases/languages.ts";
import { leaks } from "./cases/leaks.ts";
import { lifecycle } from "./cases/lifecycle.ts";
import { lostSession } from "./cases/lost-session.ts";
import { networkPolicy } from "./cases/network-policy.ts";
import { options } from "./cases/options.ts";
import { output } from "./cases/output.ts";
import { processes } from "./cases/processes.ts";
import { pythonFunctions } from "./cases/python-functions.ts";
import { runUsage } from "./cases/run-usage.ts";
import { runs } from "./cases/runs.ts";
import { stalledStream } from "./cases/stalled-stream.ts";
import { startedPrograms } from "./cases/started-programs.ts";
import { state } from "./cases/state.ts";
import { stdin } from "./cases/stdin.ts";
import { stream } from "./cases/stream.ts";
import { terminals } from "./cases/terminals.ts";
import { timeout } from "./cases/timeout.ts";
import { usage } from "./cases/usage.ts";
import { watchedDirectories } from "./cases/watched-directories.ts";
import { workspaceLimit } from "./cases/workspace-limit.ts";
import { workspace } from "./cases/workspace.ts";
import type { ConformanceGroup } from "./conformance-case.ts";

/** The suite in the order of the report: from the basics that everything else depends on to what executors leave behind. */
export const allGroups: readonly ConformanceGroup[] = [
  blocks,
  options,
  languages,
  code,
  output,
  encoding,
  stdin,
  environment,
  stream,
  stalledStream,
  runs,
  timeout,
  abort,
  processes,
  startedPrograms,
  connectedPrograms,
  terminals,
  addresses,
  concurrency,
  state,
  lifecycle,
  lostSession,
  keepAlive,
  keptRuns,
  networkPolicy,
  files,
  fileOperations,
  fileStreams,
  watchedDirectories,
  changes,
  archives,
  checkpoint,
  filename,
  workspace,
  workspaceLimit,
  usage,
  runUsage,
  hostileFiles,
  hostileTrees,
  pythonFunctions,
  javascriptFunctions,
  functionPrompt,
  hostFunctions,
  displays,
  component,
  leaks,
];
