// Waits for a program to run, and runs it as a new interpreter would. Node 18 or later.
"use strict";
const { closeSync, readFileSync, writeSync } = require("node:fs");
const { runMain } = require("node:module");

const request = 3;
const [file = "", ...variables] = readFileSync(request, "utf8").split("\0");
if (file === "") process.exit(0);
// Without this answer, another interpreter runs the program.
writeSync(request, "1");
closeSync(request);
for (const each of variables) {
  const end = each.indexOf("=");
  process.env[each.slice(0, end)] = each.slice(end + 1);
}
process.argv[1] = file;
delete require.cache[__filename];
// Deferred until this module has returned, so that the program has no parent module.
process.nextTick(() => runMain());
