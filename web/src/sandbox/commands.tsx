/** Commands of a sandbox: those that run, and those that have ended. */
import type { ReactNode } from "react";
import type { SandboxDetail } from "../../../src/base/schema/sandbox.ts";
import { Ago, Answered, Command, Empty, Section } from "../parts/parts.tsx";
import { State } from "../parts/state.tsx";
import { useAct, useAnswer } from "../server/queries.ts";

export function Commands({ box }: { readonly box: SandboxDetail }): ReactNode {
  const query = useAnswer("listCommands", { sandbox: box.id, all: true });
  const kill = useAct("killCommand");
  return (
    <Answered query={query} what="commands">
      {({ commands }) => (
        <Section title="Commands" aside={<Command line={`viv ps ${box.name} --all`} />}>
          <div className="card scroll-x" tabIndex={0}>
            {commands.length === 0 ? (
              <Empty command={`viv exec ${box.name} -- COMMAND`}>No command has run yet.</Empty>
            ) : (
              <table className="commands">
                <thead>
                  <tr>
                    <th>Command</th>
                    <th>State</th>
                    <th>Started</th>
                    <th />
                  </tr>
                </thead>
                <tbody>
                  {commands
                    .toReversed()
                    .slice(0, 200)
                    .map((one) => (
                      <tr key={one.id}>
                        <td className="wrap">
                          <code>{one.command.join(" ")}</code>
                        </td>
                        <td>
                          <State tone={one.running ? "running" : one.end?.exitCode === 0 ? "passed" : "failed"}>
                            {one.running ? `process ${one.pid ?? ""}` : `exit ${one.end?.exitCode ?? "unknown"}`}
                          </State>
                        </td>
                        <td className="small">
                          <Ago at={one.startedAt} />
                        </td>
                        <td className="right">
                          {one.running && (
                            <button
                              type="button"
                              className="button small"
                              title={`viv kill ${box.name} ${one.id}`}
                              onClick={() => kill.mutate({ sandbox: box.id, command: one.id })}
                            >
                              End
                            </button>
                          )}
                        </td>
                      </tr>
                    ))}
                </tbody>
              </table>
            )}
          </div>
        </Section>
      )}
    </Answered>
  );
}
