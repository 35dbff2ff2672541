/** What models cost: by day, model, agent, project and sandbox, each with its tokens. */
import type { ReactNode } from "react";
import type { UsageRow } from "../../../src/base/schema/model.ts";
import { Answered, Command, Empty, Section } from "../parts/parts.tsx";
import { baseName, compact, dollars } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";

/** Sums by a key, the largest first. */
function sums(
  rows: readonly UsageRow[],
  key: (row: UsageRow) => string,
): { name: string; cost: number; tokens: number; requests: number }[] {
  const found = new Map<string, { name: string; cost: number; tokens: number; requests: number }>();
  for (const row of rows) {
    const name = key(row);
    const sum = found.get(name) ?? { name, cost: 0, tokens: 0, requests: 0 };
    found.set(name, {
      name,
      cost: sum.cost + row.microDollars / 1e6,
      tokens: sum.tokens + row.inputTokens + row.outputTokens + row.cacheReadTokens + row.cacheWriteTokens,
      requests: sum.requests + row.requests,
    });
  }
  return [...found.values()].toSorted((one, other) => other.cost - one.cost);
}

function CostTable({ title, rows }: { readonly title: string; readonly rows: ReturnType<typeof sums> }): ReactNode {
  const most = Math.max(0, ...rows.map(({ cost }) => cost));
  return (
    <Section title={title}>
      <div className="card">
        <table>
          <thead className="sr-only">
            <tr>
              <th>{title}</th>
              <th>Share</th>
              <th>Tokens</th>
              <th>Cost</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, 30).map((row) => (
              <tr key={row.name}>
                <td className="wrap">{row.name}</td>
                <td className="share">
                  <span className="meter" aria-hidden="true">
                    <i style={{ width: `${most === 0 ? 0 : (row.cost / most) * 100}%` }} />
                  </span>
                </td>
                <td className="right muted">{compact(row.tokens)} tokens</td>
                <td className="right">{dollars(row.cost)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

export function Costs(): ReactNode {
  const query = useAnswer("usage", {}, { every: 10_000 });
  const runs = useAnswer("listRuns", { all: true }).data?.runs ?? [];
  const agents = new Map(runs.flatMap(({ sandbox, agent }) => (sandbox === null ? [] : [[sandbox, agent] as const])));
  return (
    <Answered query={query} what="costs">
      {({ usage, todayMicroDollars, budgets }) =>
        usage.length === 0 ? (
          <div className="card">
            <Empty command="viv usage">No model was asked yet, so nothing was spent.</Empty>
          </div>
        ) : (
          <>
            <div className="row wraps">
              <p className="grow">
                <span className="strong">{dollars(todayMicroDollars / 1e6)}</span> today
                {budgets.day === undefined ? ". No budget for a day is set." : ` of ${dollars(budgets.day)} that may be spent.`}
              </p>
              <Command line="viv usage" />
            </div>
            <div className="halves">
              <CostTable title="By day" rows={sums(usage, ({ day }) => day).toSorted((one, other) => (one.name > other.name ? -1 : 1))} />
              <CostTable title="By model" rows={sums(usage, ({ provider, model }) => `${model} · ${provider}`)} />
              <CostTable title="By agent" rows={sums(usage, ({ sandbox }) => agents.get(sandbox) ?? "no agent of a run")} />
              <CostTable title="By project" rows={sums(usage, ({ project }) => baseName(project))} />
              <CostTable title="By sandbox" rows={sums(usage, ({ name }) => name)} />
            </div>
          </>
        )
      }
    </Answered>
  );
}
