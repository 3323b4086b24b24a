/**
 * A program that creates modules from their sources and runs them in the given order, in which they import each other.
 * It imports nothing itself, because an import could come from the work directory. The JSON is also valid Python.
 */
export function withModules(programs: Readonly<Record<string, string>>): string {
  return `import sys
for name, program in ${JSON.stringify(programs)}.items():
    module = sys.modules[name] = type(sys)(name)
    exec(compile(program, "<" + name + ">", "exec"), module.__dict__)
`;
}
