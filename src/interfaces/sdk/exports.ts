/** What both entries of the package have, beside `Vivarium` itself. */
export type { Approvals } from "./approvals.ts";
export type { CodeContext, CodeOptions, CodeResult, Picture } from "./code.ts";
export type { CallOptions } from "./connection.ts";
export type { ChangeOptions, ClickOptions, Desktop, DesktopOptions, Point, ScrollOptions } from "./desktop.ts";
export { VivariumError } from "./error.ts";
export type { CommandLine, CommandOptions, ExecOptions, Execution, Output, RunOptions, RunResult } from "./execution.ts";
export type { Approach, Attempt, Experiment, TryOptions } from "./experiment.ts";
export type { CopyReport, FileChange, FileOptions, Files, WatchOptions, WriteOptions } from "./files.ts";
export type { FetchOptions, LocalPort, Port, PortSocket } from "./port.ts";
export type { PromoteOptions, Promotion } from "./promotion.ts";
export type { ForkOptions, Sandbox } from "./sandbox.ts";
export type { Task, TaskOptions, TaskResult } from "./task.ts";
export type * from "./types/types.ts";
export type { CreateOptions, EventOptions } from "./vivarium.ts";
