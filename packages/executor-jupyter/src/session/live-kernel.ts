import type { RunningKernel } from "../kernel/running-kernel.ts";
import type { HelperReport, PythonHelper } from "../python/python-helper.ts";

/** The kernel of a session, and what was put into it. */
export interface LiveKernel {
  readonly kernel: RunningKernel;
  /** There if it is a Python kernel. */
  readonly python?: { readonly helper: PythonHelper; readonly report: HelperReport };
}
