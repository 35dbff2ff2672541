import { describe, expect, test } from "vitest";
import { ResponseReader } from "../../src/rules/network/response.ts";

/** What a client would get of an answer that comes in pieces of this size, and how it ended. */
function read(text: string, pieceBytes: number, options: { headRequest?: boolean; closes?: boolean } = {}): string {
  const data = Buffer.from(text, "latin1");
  let told = "";
  let free = 0;
  let pieces = 0;
  const reader = new ResponseReader(
    {
      head: ({ status, phrase, headers }) => (told += `${status} ${phrase} ${headers.join("|")}: `),
      body: (chunk, done) => {
        told += chunk.toString("latin1");
        done();
      },
      end: () => (told += " end"),
      broken: () => (told += " broken"),
    },
    { headRequest: options.headRequest ?? false, maxHeadBytes: 1000 },
  );
  for (let at = 0; at < data.length; at += pieceBytes) {
    pieces += 1;
    reader.take(Buffer.from(data.subarray(at, at + pieceBytes)), () => (free += 1));
  }
  if (options.closes !== false) reader.ended();
  expect(free, "every piece of memory comes back once").toBe(pieces);
  return told;
}

const SIZES = [1, 2, 3, 7, 10_000];

describe("answers from outside", () => {
  test.each<[string, string, string, { headRequest?: boolean; closes?: boolean }?]>([
    ["with a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200 OK Content-Length|5: hello end", { closes: false }],
    [
      "without a body",
      "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
      "304 Not Modified Content-Length|5:  end",
      { closes: false },
    ],
    ["to HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "200 OK Content-Length|5:  end", { headRequest: true, closes: false }],
    ["of length 0", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "200 OK Content-Length|0:  end", { closes: false }],
    ["that end with the connection", "HTTP/1.0 200 OK\r\nX: y\r\n\r\nhello", "200 OK X|y: hello end"],
    [
      "in chunks",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n",
      "200 OK Transfer-Encoding|chunked: hello end",
      { closes: false },
    ],
    [
      "behind an interim one",
      "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
      "200 OK Content-Length|1: x end",
      { closes: false },
    ],
    ["without a phrase", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", "200  Content-Length|1: x end"],
    ["longer than they say", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", "200 OK Content-Length|2: he end"],
    ["shorter than they say", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "200 OK Content-Length|9: hello broken"],
    [
      "with chunks that don't end",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n",
      "200 OK Transfer-Encoding|chunked: hel broken",
    ],
    [
      "with a chunk that is none",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nhel\r\n",
      "200 OK Transfer-Encoding|chunked:  broken",
    ],
    ["that are none", "SSH-2.0-OpenSSH\r\n\r\n", " broken"],
    ["that stop in the head", "HTTP/1.1 200 OK\r\nConte", " broken"],
    ["with two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", " broken"],
    ["with another coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nxx", " broken"],
    ["that change the protocol", "HTTP/1.1 101 Switching Protocols\r\n\r\nxx", " broken"],
    ["with a head without end", `HTTP/1.1 200 OK\r\nX: ${"y".repeat(2000)}\r\n\r\n`, " broken"],
    ["with a broken header", "HTTP/1.1 200 OK\r\nX Y: z\r\n\r\n", " broken"],
  ])("%s", (_, text, told, options) => {
    for (const size of SIZES) expect(read(text, size, options), `in pieces of ${size}`).toBe(told);
  });
});
