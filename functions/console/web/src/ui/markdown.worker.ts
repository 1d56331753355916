// Reads Markdown outside of the page, which can give up if a text takes too long.

import { type Token, type Tokens, lexer } from "marked";

/** Parts of a text that a page draws, at most. A table has a part for each column in each row, also for absent cells. */
const PARTS_MAX = 50_000;

/** The number of parts, with those inside of them. */
function size(parts: object[]): number {
  let all = parts.length;
  for (const part of parts) {
    const { type, tokens = [], ...more } = part as Tokens.Generic;
    all += size(tokens);
    if (type === "list") all += size(more.items);
    if (type === "table") for (const row of [more.header, ...more.rows]) all += size(row);
  }
  return all;
}

self.onmessage = ({ data }: MessageEvent<string>) => {
  const tokens: Token[] = lexer(data);
  self.postMessage(size(tokens) > PARTS_MAX ? "none" : [...tokens]);
};
