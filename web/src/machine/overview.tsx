/** What the server uses of the machine, over the time that the page is open, and what it is. */
import type { ReactNode } from "react";
import type { ServerStatus } from "../../../src/base/schema/server.ts";
import { Ago, Command, Section } from "../parts/parts.tsx";
import { Plot, useHistory } from "../parts/plot.tsx";
import { bytes, plural } from "../parts/words.ts";
import "../style/sandbox.css";

export function Overview({ status, stamp }: { readonly status: ServerStatus; readonly stamp: number }): ReactNode {
  const used = status.memory.totalBytes - status.memory.freeBytes;
  const full = status.disk.totalBytes - status.disk.freeBytes;
  const count = Object.values(status.sandboxes).reduce((sum, one) => sum + one, 0);
  const memory = useHistory(used, stamp);
  const disk = useHistory(full, stamp);
  const load = useHistory(status.load.lastMinute, stamp);
  const boxes = useHistory(status.sandboxes["running"] ?? 0, stamp);
  return (
    <>
      <Section title="Use">
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
