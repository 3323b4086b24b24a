/** Installs the workspace's dependencies, if they are not there already. */
import { ensureInstalled } from "./workspace.mjs";

ensureInstalled();
