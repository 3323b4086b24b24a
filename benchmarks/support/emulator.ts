/** An emulator in a separate process: prints its address and a token, and ends when its standard input does. */
import { startAcaEmulator } from "@fenced/aca-emulator";

await using emulator = await startAcaEmulator();
console.log(emulator.endpoint, emulator.token());
for await (const _ of process.stdin);
