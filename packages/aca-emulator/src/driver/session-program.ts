import { pythonWorker } from "./python-worker.ts";
import { supervisor } from "./supervisor.ts";

/** The program of a session, for `python -c`; its argument is the configuration as JSON. */
export const sessionProgram: string = `import base64, json, os, select, signal, sys, time\n${pythonWorker}\n${supervisor}`;
