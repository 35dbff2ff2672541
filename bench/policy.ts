/** How many decisions the policy takes in a second, for commands as agents write them. */
import { decide, effectivePolicy } from "../src/base/policy/policy.ts";
import { round, series } from "./measure.ts";
import type { Group } from "./rows.ts";

const COMMANDS = [
  "npm ci && npm test 2>&1 | tail -n 50",
  "cd packages/web && NODE_ENV=test npm run build && git add -A && git commit -m 'build: web'",
  'for f in src/*.ts; do grep -n "export" "$f" || true; done > out.txt',
  "git diff --stat HEAD~1 | awk '{print $1}' | sort | uniq -c | head",
  "find . -name '*.log' -mtime +3 -exec rm {} + ; du -sh . | tee size.txt",
  "bash -lc \"npm test -- --grep '$NAME' && echo ok\"",
  "timeout 120 env CI=1 npm run e2e -- --shard=1/4 || { cat log.txt; exit 1; }",
  "curl -sS https://example.com/data.json | jq '.items[] | .name' > names.txt",
];
const POLICIES = [
  effectivePolicy({ level: 1, project: "/home/me/app" }),
  effectivePolicy({ level: 2, project: "/home/me/app" }),
  effectivePolicy({ level: 3, project: "/home/me/app" }),
  effectivePolicy({ yolo: 3, project: "/home/me/app" }),
];
const ROUNDS = 25;

/** Every command at every level, so that the figure is not that of the shortest list of rules. */
function pass(times: number): number {
  const began = performance.now();
  for (let time = 0; time < times; time += 1) {
    for (const policy of POLICIES) for (const command of COMMANDS) decide(policy, { kind: "command", command });
  }
  return (times * POLICIES.length * COMMANDS.length) / ((performance.now() - began) / 1000);
}

export const policyGroup: Group = {
  keys: ["policy_per_s"],
  async measure({ quick, progress }) {
    progress("policy_per_s");
    pass(20);
    const samples = Array.from({ length: quick ? 5 : ROUNDS }, () => pass(25));
    const raw = series(samples, "per s");
    return { policy_per_s: { figure: round(raw.median), raw: { decisions: raw } } };
  },
};
