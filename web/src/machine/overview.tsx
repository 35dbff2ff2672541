/** What is used of the machine, over the last day as far as the server knows it, and what the server is. */
import type { ReactNode } from "react";
import type { MachineSample, ServerStatus } from "../../../src/base/schema/server.ts";
import { useHistory } from "../parts/history.ts";
import { Ago, Command, Section } from "../parts/parts.tsx";
import { Plot } from "../parts/plot.tsx";
import type { Reading } from "../parts/readings.ts";
import { bytes, plural } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";
import "../style/sandbox.css";

/** The server notes one sample a minute. */
const HISTORY_MS = 60_000;

/** What the server noted, then what this page has seen since. */
function joined(samples: readonly MachineSample[], value: (sample: MachineSample) => number, since: readonly Reading[]): Reading[] {
  const noted = samples.map((sample) => ({ at: Date.parse(sample.at), value: value(sample) }));
  const last = noted.at(-1)?.at ?? 0;
  return [...noted, ...since.filter(({ at }) => at > last)];
}

export function Overview({ status, stamp }: { readonly status: ServerStatus; readonly stamp: number }): ReactNode {
  const used = status.memory.totalBytes - status.memory.freeBytes;
  const full = status.disk.totalBytes - status.disk.freeBytes;
  const count = Object.values(status.sandboxes).reduce((sum, one) => sum + one, 0);
  const samples = useAnswer("machineHistory", {}, { every: HISTORY_MS }).data?.samples ?? [];
  const memory = joined(samples, (one) => one.memoryBytes, useHistory(used, stamp));
  const disk = joined(samples, (one) => one.diskBytes, useHistory(full, stamp));
  const load = joined(samples, (one) => one.load, useHistory(status.load.lastMinute, stamp));
  const boxes = joined(samples, (one) => one.sandboxes, useHistory(status.sandboxes["running"] ?? 0, stamp));
  const from = samples[0]?.at;
  return (
    <>
      <Section
        title="Use"
        aside={
          from !== undefined && (
            <span className="small muted">
              from <Ago at={from} /> until now
            </span>
          )
        }
      >
        <div className="card">
          <div className="body plots">
            <Plot
              name="Memory of the machine"
              values={memory}
              limit={status.memory.totalBytes}
              words={`${bytes(used)} of ${bytes(status.memory.totalBytes)}`}
            />
            <Plot
              name="Load"
              values={load}
              limit={status.load.cpus}
              words={`${status.load.lastMinute.toFixed(2)} on ${plural(status.load.cpus, "processor")}`}
            />
            <Plot
              name="Disk under the state folder"
              values={disk}
              limit={status.disk.totalBytes}
              words={`${bytes(full)} of ${bytes(status.disk.totalBytes)}`}
            />
            <Plot
              name="Sandboxes that run"
              values={boxes}
              limit={null}
              words={`${status.sandboxes["running"] ?? 0} of ${count} there are`}
            />
          </div>
        </div>
      </Section>
      <Section title="Server" aside={<Command line="viv status" />}>
        <div className="card">
          <dl className="facts body">
            <dt>Version</dt>
            <dd>{status.version}</dd>
            <dt>Runs since</dt>
            <dd>
              <Ago at={status.startedAt} />, process {status.pid}
            </dd>
            <dt>Walls</dt>
            <dd>
              {status.driver}, as {status.mode}; limits are {status.limitsHeld}
            </dd>
            <dt>Storage</dt>
            <dd>
              {status.storage} in <code>{status.home}</code>
            </dd>
            <dt>Listens on</dt>
            <dd>
              <code>{status.listen ?? "its socket"}</code>
            </dd>
            <dt>Events</dt>
            <dd>{status.newestEvent}</dd>
          </dl>
        </div>
      </Section>
    </>
  );
}
