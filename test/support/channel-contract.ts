/** What every way to a person promises (src/work/notifications/channel.ts), over each of them. */
import { describe, expect, test } from "vitest";
import type { Channel, Message } from "../../src/work/notifications/channel.ts";

export interface ChannelLab {
  readonly channel: () => Channel;
  /** What came out at the other end of the last send: title and text as a person sees them. */
  readonly seen: () => Promise<{ readonly title: string; readonly text: string; readonly id: string | undefined }>;
  /** The next sends fail for a while; absent where the receiver can't say so. */
  readonly refuse?: () => void;
}

export function aMessage(changes: Partial<Message> = {}): Message {
  return {
    id: "ntfAbcdefghijklmnopqrstuvwxyz",
    kind: "question",
    title: "Question: mend the tests",
    text: "It asks to run git push: it leaves the machine.",
    link: "/question/apv1",
    url: "http://127.0.0.1:7411/question/apv1",
    project: "/srv/project",
    run: null,
    at: "2026-11-17T06:00:00.000Z",
    ...changes,
  };
}

/** As far as `text.ts` lets them through: no controls, but what shells, headers, HTML and markup give a meaning to. */
export const HOSTILE = aMessage({
  title: "Subject: <b>$(touch /tmp/x)</b> `id` --help %0d%0aBcc: evil@example.com 👩‍💻",
  text: "</script><img src=x onerror=alert(1)> & \"quoted\" 'too' \\ ; rm -rf / | cat > y",
});

export function channelContract(name: string, lab: ChannelLab): void {
  describe(`the channel ${name}`, () => {
    test("shows title and text as they are", async () => {
      const message = aMessage();
      expect(await lab.channel().send(message, AbortSignal.timeout(10_000))).toEqual({ sent: true });
      expect(await lab.seen()).toMatchObject({ title: message.title, text: message.text });
    });

    test("AP-32: gives no text from a sandbox a meaning", async () => {
      expect(await lab.channel().send(HOSTILE, AbortSignal.timeout(10_000))).toEqual({ sent: true });
      expect(await lab.seen()).toMatchObject({ title: HOSTILE.title, text: HOSTILE.text });
    });

    test("passes on the same id when it sends again, where a receiver can tell by it", async () => {
      const ids = [];
      for (let time = 0; time < 2; time += 1) {
        await lab.channel().send(aMessage(), AbortSignal.timeout(10_000));
        ids.push((await lab.seen()).id);
      }
      expect(ids[0]).toBe(ids[1]);
    });

    test("gives up with its signal, and says so as a value", async () => {
      const outcome = await lab.channel().send(aMessage(), AbortSignal.abort());
      expect(outcome).toMatchObject({ sent: false, reason: expect.stringMatching(/./) });
    });

    const { refuse } = lab;
    if (refuse === undefined) return;
    test("says that it may go well later, where its receiver refuses for now", async () => {
      refuse();
      expect(await lab.channel().send(aMessage(), AbortSignal.timeout(10_000))).toMatchObject({ sent: false, again: true });
      expect(await lab.channel().send(aMessage(), AbortSignal.timeout(10_000))).toEqual({ sent: true });
    });
  });
}
