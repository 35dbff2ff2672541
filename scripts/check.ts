import { reportChecks, runChecks } from "./checks.ts";

const failed = reportChecks(await runChecks());
process.exitCode = failed === 0 ? 0 : 1;
