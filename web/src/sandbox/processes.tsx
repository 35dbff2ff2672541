/** What runs inside, whether or not viv started it. Names and arguments are what each process says of itself. */
import type { ReactNode } from "react";
import type { Process } from "../../../src/base/schema/process.ts";
import type { SandboxDetail } from "../../../src/base/schema/sandbox.ts";
import { Ago, Answered, Command, Empty, Section } from "../parts/parts.tsx";
import { State, type Tone } from "../parts/state.tsx";
import { bytes, duration } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";

/** Processes come and go without an event. */
const LIVE_MS = 2_000;
const SHOWN = 200;

const TONES: Readonly<Record<Process["state"], Tone>> = {
  running: "running",
  sleeping: "stopped",
  waiting: "waiting",
  stopped: "waiting",
  ended: "stopped",
  unknown: "stopped",
};

export function Processes({ box }: { readonly box: SandboxDetail }): ReactNode {
  const query = useAnswer("listProcesses", { sandbox: box.id }, { every: LIVE_MS });
  return (
    <Answered query={query} what="processes">
      {({ processes, more }) => (
        <Section title="Processes" count={processes.length} aside={<Command line={`viv ps ${box.name} --processes`} />}>
          <div className="card scroll-x" tabIndex={0}>
            {processes.length === 0 ? (
              <Empty command={`viv exec ${box.name} -- COMMAND`}>Nothing runs inside now.</Empty>
            ) : (
              <table className="small">
                <thead>
                  <tr>
                    <th className="right">Id</th>
                    <th>Program</th>
                    <th>State</th>
                    <th className="right">CPU time</th>
                    <th className="right">Memory</th>
                    <th>Started</th>
                  </tr>
                </thead>
                <tbody>
                  {processes.slice(0, SHOWN).map((one) => (
                    <tr key={one.pid}>
                      <td className="right number">{one.pid}</td>
                      <td className="wrap">
                        <code>{one.command.length === 0 ? `[${one.name}]` : one.command.join(" ")}</code>
                      </td>
                      <td>
                        <State tone={TONES[one.state]}>{one.state}</State>
                      </td>
                      <td className="right number">{duration(one.cpuMs)}</td>
                      <td className="right number">{bytes(one.memoryBytes)}</td>
                      <td className="small">
                        <Ago at={one.startedAt} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            {(more || processes.length > SHOWN) && <p className="small muted body">There are more.</p>}
          </div>
        </Section>
      )}
    </Answered>
  );
}
