/** Debian with Python and pip, and without Node. */
export const pythonImage = "fenced-test:python";
/** BusyBox with Node, and without Python. */
export const nodeImage = "fenced-test:node";
/** Debian with Python, NumPy and pandas. */
export const analysisImage = "fenced-test:analysis";
