/** How notifications reach people: this browser, the others, and the channels of the config, each with its state in words. */
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import type { OutputOf } from "../../../src/base/schema/contracts.ts";
import { Ago, Answered, Command, Empty, Failure, Section } from "../parts/parts.tsx";
import { State, type Tone } from "../parts/state.tsx";
import { plural } from "../parts/words.ts";
import { useAct, useAnswer } from "../server/queries.ts";
import { session } from "../server/session.ts";
import { currentSubscription, obstacle, subscribe, unsubscribe } from "./subscription.ts";

type Notifications = OutputOf<"listNotifications">;

const WEBHOOK = `"notifications": { "channels": { "phone": { "type": "webhook", "url": "https://…" } } }`;

/** Where push messages can't be had, something else does the same. */
function Instead(): ReactNode {
  return (
    <p className="small muted">
      A webhook reaches you in any case: name one in your config, with <code className="wrap">{WEBHOOK}</code>.
    </p>
  );
}

function ThisBrowser({ data, again }: { readonly data: Notifications; readonly again: () => void }): ReactNode {
  const own = useQuery({ queryKey: ["push subscription"], queryFn: async () => (await currentSubscription()) !== undefined });
  const [busy, setBusy] = useState<string>();
  const [error, setError] = useState<unknown>();
  const blocked = obstacle();
  const browser = data.browsers.find((one) => one.session === session()?.id);
  const isOn = browser !== undefined && own.data === true;
  const act = async (what: string, work: () => Promise<void>): Promise<void> => {
    setBusy(what);
    setError(undefined);
    try {
      await work();
    } catch (failure) {
      setError(failure);
    }
    setBusy(undefined);
    await own.refetch();
    again();
  };
  return (
    <Section title="This browser">
      <div className="card">
        <div className="body stack">
          <div className="row wraps" role="status">
            <State tone={isOn ? "passed" : blocked === undefined ? "stopped" : "waiting"}>{isOn ? "on" : "off"}</State>
            <span className="grow wrap">
              {busy ??
                (isOn
                  ? `Gets notifications by ${browser.service}, also while no page is open.`
                  : (blocked ?? "Gets no notifications while no page is open."))}
            </span>
            {isOn ? (
              <button
                type="button"
                className="button"
                disabled={busy !== undefined}
                onClick={() => void act("Unsubscribing …", () => unsubscribe(browser.id))}
              >
                Turn off
              </button>
            ) : (
              <button
                type="button"
                className="button primary"
                disabled={busy !== undefined || blocked !== undefined}
                onClick={() => void act("Asking the browser and its push service …", () => subscribe(data.pushKey))}
              >
                Turn on
              </button>
            )}
          </div>
          {error !== undefined && <Failure error={error} />}
          {(error !== undefined || blocked !== undefined) && <Instead />}
        </div>
      </div>
    </Section>
  );
}

interface ChannelWords {
  readonly tone: Tone;
  readonly state: string;
  readonly text: string;
}

function wordsOf({ trouble, waiting, sentAt }: Notifications["channels"][number]): ChannelWords {
  if (trouble !== null && waiting > 0)
    return { tone: "waiting", state: "waiting", text: `${trouble} ${plural(waiting, "notification")} will be tried again.` };
  if (trouble !== null) return { tone: "failed", state: "failed", text: trouble };
  return sentAt === null
    ? { tone: "stopped", state: "unused", text: "Nothing was sent yet." }
    : { tone: "passed", state: "works", text: "" };
}

function Channels({ data, again }: { readonly data: Notifications; readonly again: () => void }): ReactNode {
  const test = useAct("testNotification");
  return (
    <Section title="Channels" count={data.channels.length} aside={<Command line="viv notify" />}>
      {test.error !== null && <Failure error={test.error} />}
      <div className="card">
        {data.channels.length === 0 ? (
          <Empty>There is no way to you yet. Turn this browser on, or name a webhook, command, mail or desktop in your config.</Empty>
        ) : (
          <ul className="list">
            {data.channels.map((one) => (
              <li key={one.name} className="finding">
                <State tone={wordsOf(one).tone}>{wordsOf(one).state}</State>
                <div className="grow">
                  <div className="wrap">
                    <span className="strong">{one.type === "push" ? browserOf(one.name, data) : one.name}</span> {wordsOf(one).text}
                  </div>
                  <div className="small muted wrap">
                    {one.type} · {one.on.length === 0 ? "tells of nothing by itself" : `tells of ${one.on.join(", ")}`}
                    {one.sentAt !== null && (
                      <>
                        {" "}
                        · last sent <Ago at={one.sentAt} />
                      </>
                    )}
                  </div>
                </div>
                <button
                  type="button"
                  className="button small"
                  title={`viv notify --test "${one.name}"`}
                  disabled={test.isPending}
                  onClick={() => test.mutate({ channel: one.name }, { onSettled: again })}
                >
                  Test
                </button>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Section>
  );
}

function browserOf(channel: string, { browsers }: Notifications): string {
  const browser = browsers.find(({ id }) => channel.endsWith(id));
  if (browser === undefined) return channel;
  return browser.session === session()?.id ? "This browser" : `A browser at ${browser.service}`;
}

const TONES: Readonly<Record<Notifications["deliveries"][number]["state"], Tone>> = {
  waiting: "waiting",
  sent: "passed",
  failed: "failed",
  dropped: "stopped",
};

function Lately({ data }: { readonly data: Notifications }): ReactNode {
  return (
    <Section title="Lately" aside={<Command line="viv notify --log" />}>
      <div className="card">
        {data.deliveries.length === 0 ? (
          <Empty>Nothing was told yet. Questions, and what is done or has failed, will be here.</Empty>
        ) : (
          <ul className="list">
            {data.deliveries.slice(0, 50).map((one) => (
              <li key={`${one.notification.id} ${one.channel}`} className="finding">
                <State tone={TONES[one.state]}>{one.state}</State>
                <div className="grow">
                  <div className="wrap">
                    <a className="strong" href={one.notification.link}>
                      {one.notification.title}
                    </a>
                  </div>
                  <div className="small muted wrap">{one.reason ?? one.notification.text}</div>
                </div>
                <span className="small muted">
                  <Ago at={one.notification.at} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Section>
  );
}

export function Notifications(): ReactNode {
  const query = useAnswer("listNotifications", {}, { every: 5_000 });
  const again = (): void => void query.refetch();
  return (
    <Answered query={query} what="notifications">
      {(data) => (
        <>
          <ThisBrowser data={data} again={again} />
          <Channels data={data} again={again} />
          <Lately data={data} />
        </>
      )}
    </Answered>
  );
}
