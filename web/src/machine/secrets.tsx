/** Secrets by name; no page ever gets a value. */
import type { ReactNode } from "react";
import { Ago, Answered, Empty } from "../parts/parts.tsx";
import { useAnswer } from "../server/queries.ts";

export function Secrets(): ReactNode {
  const query = useAnswer("listSecrets", {});
  return (
    <Answered query={query} what="secrets">
      {({ secrets }) => (
        <div className="card">
          {secrets.length === 0 ? (
            <Empty command="viv secret set NAME --host HOST">
              No secret is kept. Sandboxes use one by its name, and never see its value:
            </Empty>
          ) : (
            <table>
              <thead>
                <tr>
                  <th>Name</th>
                  <th>For</th>
                  <th>Changed</th>
                </tr>
              </thead>
              <tbody>
                {secrets.map((one) => (
                  <tr key={one.name}>
                    <td className="strong">{one.name}</td>
                    <td className="wrap">{one.hosts.join(", ")}</td>
                    <td>
                      <Ago at={one.changedAt} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </div>
      )}
    </Answered>
  );
}
