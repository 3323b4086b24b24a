/**
 * Packs every publishable package into the folder that FENCED_TARBALLS names, as a release would. Whatever looks at packages
 * afterwards with the same variable (publint, attw, check:installs, check:new-executor) takes them from there.
 */
import { mkdirSync } from "node:fs";
import { packAll } from "./packages.mjs";
import { root } from "./workspace.mjs";

const folder = process.env.FENCED_TARBALLS;
if (folder === undefined) throw new Error("Set FENCED_TARBALLS to the folder to put them in.");
mkdirSync(folder, { recursive: true });
for (const { name } of packAll(root, folder)) console.log(`packed  ${name}`);
