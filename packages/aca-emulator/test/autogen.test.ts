import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { Client, older, upload } from "./client.ts";

/** Makes the calls of AutoGen's client for the service, in the same order, and parses the answers in the same way. */
class AutoGenClient {
  readonly #client: Client;
  #inDirectory = false;

  constructor(client: Client) {
    this.#client = client;
  }

  async availablePackages(): Promise<ReadonlySet<string>> {
    const { exitCode, output } = await this.#execute(
      "\nimport pkg_resources\n[d.project_name for d in pkg_resources.working_set]\n",
    );
    if (exitCode !== 0) throw new Error(`Failed to get list of available packages: ${output}`);
    const names = output.replaceAll(/^[[\]]+|[[\]]+$/g, "").split(",\n");
    return new Set(names.map((name) => name.replaceAll(/^[ ']+|[ ']+$/g, "")));
  }

  async run(code: string): Promise<{ exitCode: number; output: string }> {
    const entered = this.#inDirectory || (await this.#execute("import os; os.chdir('/mnt/data')")).exitCode === 0;
    if (!entered) throw new Error("Failed to set up Azure container working directory");
    this.#inDirectory = true;
    return this.#execute(code);
  }

  async fileList(): Promise<unknown[]> {
    const { json } = await this.#client.call("GET", "files", { version: older });
    return json.value.map((value) => Reflect.get(Object(Reflect.get(value, "properties")), "filename") as unknown);
  }

  async #execute(code: string): Promise<{ exitCode: number; output: string }> {
    const { status, json } = await this.#client.executeOlder(code);
    if (status !== 200) throw new Error("Error while sending code block to endpoint");
    const { stdout = "", stderr = "", status: end, result } = json.properties;
    const success = String(end).includes("Success");
    const output = `${String(stderr)}${String(stdout)}${success ? String(result) : ""}`;
    return { exitCode: String(end).includes("Failure") ? 1 : 0, output };
  }
}

// Named after AutoGen's own tests, in test_aca_dynamic_sessions.py and test_aca_user_defined_functions.py.
describe("AutoGen's client", needs("python3"), () => {
  it("get_available_packages: finds packages by their names", async ({ skip }) => {
    await using client = await Client.open();
    const { stderr } = (await client.executeOlder("import pkg_resources")).json.properties;
    skip(String(stderr).includes("ModuleNotFoundError"), "this Python has no pkg_resources, which AutoGen imports");
    const packages = await new AutoGenClient(client).availablePackages();
    expect(packages).toContain("pip");
    expect([...packages].filter((name) => !/^[A-Za-z0-9][\w.-]*$/.test(name))).toEqual([]);
  });

  it("test_execute_code: returns what blocks print, and keeps variables", async () => {
    await using client = await Client.open();
    const autogen = new AutoGenClient(client);
    const first = await autogen.run("import sys; print('hello world!'); a = 100 + 100");
    expect(first).toMatchObject({ exitCode: 0 });
    expect(first.output).toContain("hello world!");
    expect((await autogen.run("print(a)")).output).toContain("200");
  });

  it("test_upload_files: lists uploaded files, which code can read", async () => {
    await using client = await Client.open();
    const autogen = new AutoGenClient(client);
    for (const [name, content] of [
      ["test1.txt", "test file 1"],
      ["test2", "test file 2"],
    ] as const) {
      const { status } = await client.call("POST", "files/upload", { version: older, body: upload(name, content) });
      expect(status).toBe(200);
    }
    expect(await autogen.fileList()).toEqual(expect.arrayContaining(["test1.txt", "test2"]));
    const { output } = await autogen.run("print(open('test1.txt').read(), open('test2').read())");
    expect(output).toContain("test file 1 test file 2");
  });

  it("test_download_files: lists and downloads files that code wrote", async () => {
    await using client = await Client.open();
    const autogen = new AutoGenClient(client);
    await autogen.run("with open('test1.txt', 'w') as f:\n    f.write('azure test file 1')");
    expect(await autogen.fileList()).toContain("test1.txt");
    expect((await client.call("GET", "files/content/test1.txt", { version: older })).text).toBe("azure test file 1");
  });

  it("test_azure_can_load_function, test_azure_cant_run_broken_str_function_with_reqs: runs functions like any other code", async () => {
    await using client = await Client.open();
    const autogen = new AutoGenClient(client);
    await autogen.run("def add_two_numbers(a: int, b: int) -> int:\n    return a + b");
    expect((await autogen.run("print(add_two_numbers(1, 2))")).output).toContain("3");
    const { exitCode, output } = await autogen.run("print(add_two_numbers(object(), False))");
    expect(exitCode).toBe(1);
    expect(output).toContain("TypeError: unsupported operand type(s) for +:");
  });

  it("test_azure_fails_for_function_incorrect_import: reports a missing module as a failure", async () => {
    await using client = await Client.open();
    const { exitCode, output } = await new AutoGenClient(client).run("import NOT_A_REAL_PACKAGE");
    expect(exitCode).toBe(1);
    expect(output).toContain("NOT_A_REAL_PACKAGE");
  });
});
