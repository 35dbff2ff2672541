/** What a sandbox reaches, what it asked for, and what it changed outside. */
import type { ReactNode } from "react";
import type { SandboxDetail } from "../../../src/base/schema/sandbox.ts";
import { Link } from "../app/router.tsx";
import { Ago, Answered, Command, Empty, Section } from "../parts/parts.tsx";
import { State, toneOf } from "../parts/state.tsx";
import { bytes, plural } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";
import { Requests } from "./requests.tsx";

export function Network({ box }: { readonly box: SandboxDetail }): ReactNode {
  const network = useAnswer("inspectNetwork", { sandbox: box.id }, { every: 5_000 });
  const effects = useAnswer("listEffects", { sandbox: box.id }, { every: 5_000 });
  return (
    <div className="stack" style={{ gap: 20 }}>
      <Answered query={network} what="the network">
        {(report) => (
          <Section title="What it reaches" aside={<Command line={`viv network ${box.name}`} />}>
            <div className="card">
              <dl className="facts body">
                <dt>Mode</dt>
                <dd>{report.rules.mode}</dd>
                <dt>Requests</dt>
                <dd>
                  {report.allowed} allowed, {report.denied} denied, {plural(report.connections, "connection")} open
                </dd>
                <dt>Bytes</dt>
                <dd>
                  {bytes(report.sentBytes)} sent, {bytes(report.receivedBytes)} received
                </dd>
                <dt>Ports inside</dt>
                <dd>
                  <Link className="link" to={`/sandbox/${box.name}?show=preview`}>
                    Preview
                  </Link>
                </dd>
              </dl>
            </div>
          </Section>
        )}
      </Answered>
      <Requests box={box} />
      <Answered query={effects} what="effects">
        {({ effects: list }) => (
          <Section title="Requests that can change something outside" count={list.length}>
            <div className="card scroll-x" tabIndex={0}>
              {list.length === 0 ? (
                <Empty>It has sent none.</Empty>
              ) : (
                <table>
                  <tbody>
                    {list.map((one) => (
                      <tr key={one.id}>
                        <td>
                          <State tone={toneOf(one.state)}>{one.state}</State>
                        </td>
                        <td className="wrap">
                          <code>
                            {one.method} {one.url}
                          </code>
                        </td>
                        <td className="right small">{one.status ?? ""}</td>
                        <td className="right small">
                          <Ago at={one.at} />
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
    </div>
  );
}
