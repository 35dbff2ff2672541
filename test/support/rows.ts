/** Rows as the engine would write them, for tests of what lies below it. */
import type { Command } from "../../src/base/schema/command.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import type { Sandbox } from "../../src/base/schema/sandbox.ts";
import type { SandboxRow } from "../../src/base/store/rows.ts";

export function aSandbox(changes: Partial<Sandbox> = {}): Sandbox {
  const id = newId("sandbox");
  return {
    id,
    name: `name-${id.slice(-8)}`,
    state: "running",
    outcome: null,
    reason: null,
    driver: "native",
    walled: true,
    project: "/srv/project",
    start: null,
    readOnly: false,
    parent: null,
    limits: { cpus: 2, memoryBytes: LIMITS.defaultMemoryBytes, diskBytes: LIMITS.defaultDiskBytes, processes: 4096 },
    limitsHeld: "hard",
    storage: "btrfs",
    createdAt: new Date().toISOString(),
    endedAt: null,
    expiresAt: null,
    idleMs: 0,
    uses: [],
    labels: {},
    autonomy: { level: null, yolo: null, role: "worker" },
    notes: [],
    untrusted: [],
    ...changes,
  };
}

export function aSandboxRow(changes: Partial<SandboxRow> = {}): SandboxRow {
  const { autonomy, notes, start, readOnly, ...rest } = changes;
  const { start: _none, ...shown } = aSandbox({
    ...rest,
    ...(autonomy === undefined ? {} : { autonomy }),
    ...(notes === undefined ? {} : { notes }),
  });
  return {
    ...shown,
    start,
    readOnly,
    base: newId("base"),
    range: 1,
    launched: { pid: 4711, start: "123456", boot: "b" },
    user: "root",
    env: { PATH: "/usr/bin" },
    environmentLeftOut: [],
    masked: ["/root/.ssh"],
    exposed: [],
    sudo: false,
    services: {},
    home: "/root",
    currentSnapshot: null,
    idempotencyKey: null,
    restoring: null,
    removing: false,
    ...changes,
  };
}

export function aCommand(sandbox: string, changes: Partial<Command> = {}): Command {
  return {
    id: newId("command"),
    sandbox,
    command: ["true"],
    user: "root",
    cwd: "/srv/project",
    terminal: false,
    pid: 7,
    startedAt: new Date().toISOString(),
    running: true,
    end: null,
    ...changes,
  };
}
