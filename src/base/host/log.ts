/** Structured log lines; the server writes them to its log file, the library to the function it was given. */
export interface Logger {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

export function jsonLogger(write: (line: string) => void): Logger {
  const log =
    (level: string) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      write(`${JSON.stringify({ at: new Date().toISOString(), level, message, ...fields })}\n`);
    };
  return { info: log("info"), warn: log("warn") };
}

/** A message for people and logs out of anything thrown. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
