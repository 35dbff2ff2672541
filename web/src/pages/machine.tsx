/** The machine: what the server uses of it, what it costs, what it can do, who decided what, and who is logged in. */
import type { ReactNode } from "react";
import type { PageProps } from "../app/pages.tsx";
import { Audit } from "../machine/audit.tsx";
import { Costs } from "../machine/costs.tsx";
import { DoctorList } from "../machine/doctor.tsx";
import { Events } from "../machine/events.tsx";
import { Overview } from "../machine/overview.tsx";
import { Policy } from "../machine/policy.tsx";
import { Secrets } from "../machine/secrets.tsx";
import { Settings } from "../machine/settings.tsx";
import { Answered, Title } from "../parts/parts.tsx";
import { asTitle, Tabs } from "../parts/tabs.tsx";
import { Notifications } from "../push/notifications.tsx";
import { useAnswer } from "../server/queries.ts";
import "../style/machine.css";

const TABS = ["overview", "costs", "policy", "audit", "events", "doctor", "secrets", "notifications", "settings"] as const;
type Tab = (typeof TABS)[number];

function Content({ tab, query }: { readonly tab: Tab; readonly query: URLSearchParams }): ReactNode {
  const status = useAnswer("status", {}, { every: 3_000 });
  switch (tab) {
    case "overview":
      return (
        <Answered query={status} what="the machine">
          {(data) => <Overview status={data} stamp={status.dataUpdatedAt} />}
        </Answered>
      );
    case "costs":
      return <Costs />;
    case "doctor":
      return <DoctorList />;
    case "audit":
      return <Audit />;
    case "events":
      return <Events />;
    case "policy":
      return <Policy query={query} />;
    case "secrets":
      return <Secrets />;
    case "notifications":
      return <Notifications />;
    case "settings":
      return <Settings />;
  }
}

export default function Machine({ query }: PageProps): ReactNode {
  const tab = TABS.find((one) => one === query.get("show")) ?? "overview";
  return (
    <main className="page">
      <Title title="Machine" />
      <Tabs
        label="Parts of the machine"
        tabs={TABS.map((one) => ({ to: `/machine?show=${one}`, text: asTitle(one), isShown: one === tab }))}
      />
      <Content tab={tab} query={query} />
    </main>
  );
}
