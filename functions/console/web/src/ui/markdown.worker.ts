// Reads Markdown outside of the page, which can give up if a text takes too long.

import { type Token, lexer } from "marked";

self.onmessage = ({ data }: MessageEvent<string>) => {
  const tokens: Token[] = lexer(data);
  self.postMessage([...tokens]);
};
