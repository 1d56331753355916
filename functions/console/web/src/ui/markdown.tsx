// Markdown as elements. It becomes no HTML on its way, so nothing in it can run, load or style anything: HTML in it stays
// a text, and an image is a link.

import type { Token, Tokens } from "marked";
import { Fragment, type ReactNode, useEffect, useState } from "react";
import { visible } from "../format";
import { Waiting } from "./parts";

/** Markdown that is longer, in characters, or takes longer to read, in milliseconds, is shown as it is written. */
const TEXT_MAX = 200_000;
const PATIENCE = 3000;

/** What is nested deeper is shown as it is written. */
const DEPTH_MAX = 30;

const NAMED: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

/** The text that a browser would show for its character references. */
const unescaped = (text: string) =>
  text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,8}));/gi, (whole, decimal, hex, name: string | undefined) => {
    if (name !== undefined) return NAMED[name.toLowerCase()] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex as string, 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });

const shown = (text: string) => visible(unescaped(text));

/** The address if a person may follow it from here: one with a server, or a mailbox. */
function safe(href: string): string | undefined {
  try {
    const { protocol, href: whole } = new URL(unescaped(href));
    return protocol === "https:" || protocol === "http:" || protocol === "mailto:" ? whole : undefined;
  } catch {
    return undefined;
  }
}

function Outside({ href, children }: { href: string; children: ReactNode }) {
  const address = safe(href);
  if (address === undefined) return <>{children}</>;
  return (
    <a className="underlined" href={address} target="_blank" rel="noreferrer nofollow">
      {children}
    </a>
  );
}

/**
 * What the elements of one text share: the last heading, since a page skips no level, how many tables there are, and
 * whether this is within a link.
 */
interface Doc {
  level: number;
  tables: number;
  isInLink: boolean;
}

const HEADINGS = ["h3", "h4", "h5", "h6"] as const;

function block(token: Token, doc: Doc, depth: number): ReactNode {
  const inside = (tokens: Token[] | undefined) => all(tokens ?? [], doc, depth + 1);
  switch (token.type) {
    case "heading": {
      // The page above has the first two levels.
      doc.level = Math.min((token as Tokens.Heading).depth - 1, doc.level + 1, HEADINGS.length - 1);
      const Heading = HEADINGS[doc.level] ?? "h6";
      return <Heading>{inside(token.tokens)}</Heading>;
    }
    case "paragraph":
      return <p>{inside(token.tokens)}</p>;
    case "blockquote":
      return <blockquote>{inside(token.tokens)}</blockquote>;
    case "code":
      return (
        <pre className="code" tabIndex={0}>
          <code>{visible((token as Tokens.Code).text)}</code>
        </pre>
      );
    case "html": {
      const text = inline(token, doc, depth);
      return (token as Tokens.HTML).block && text !== null ? <p>{text}</p> : text;
    }
    case "hr":
      return <hr />;
    case "list": {
      const { ordered, start, items } = token as Tokens.List;
      const rows = items.map((item, index) => <li key={index}>{inside(item.tokens)}</li>);
      return ordered ? <ol start={start === "" ? 1 : start}>{rows}</ol> : <ul>{rows}</ul>;
    }
    case "table": {
      const { header, rows } = token as Tokens.Table;
      doc.tables += 1;
      return (
        <div className="table" role="region" aria-label={`Table ${doc.tables} of the text`} tabIndex={0}>
          <table>
            <thead>
              <tr>
                {header.map((cell, index) => (
                  <th key={index} scope="col">
                    {inside(cell.tokens)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, column) => (
                    <td key={column}>{inside(cell.tokens)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    }
    default:
      return inline(token, doc, depth);
  }
}

function inline(token: Token, doc: Doc, depth: number): ReactNode {
  const inside = () => all((token as Tokens.Generic).tokens ?? [], doc, depth + 1);
  switch (token.type) {
    case "strong":
      return <strong>{inside()}</strong>;
    case "em":
      return <em>{inside()}</em>;
    case "del":
      return <del>{inside()}</del>;
    case "codespan":
      return <code>{visible((token as Tokens.Codespan).text)}</code>;
    case "br":
      return <br />;
    case "checkbox":
      return (token as Tokens.Checkbox).checked ? "☑ " : "☐ ";
    case "link": {
      doc.isInLink = true;
      const text = inside();
      doc.isInLink = false;
      return <Outside href={(token as Tokens.Link).href}>{text}</Outside>;
    }
    case "image": {
      const { href, text } = token as Tokens.Image;
      const name = shown(text) || "Image";
      // A badge leads where its link does.
      return doc.isInLink ? name : <Outside href={href}>{name}</Outside>;
    }
    case "text":
      return (token as Tokens.Text).tokens ? inside() : shown((token as Tokens.Text).text);
    case "escape":
      return visible((token as Tokens.Escape).text);
    case "html":
      // A comment is for who edits it.
      return token.raw.trimStart().startsWith("<!--") ? null : visible(token.raw);
    case "space":
    case "def":
      return null;
    default:
      return visible(token.raw);
  }
}

function all(tokens: Token[], doc: Doc, depth: number): ReactNode {
  if (depth > DEPTH_MAX) return visible(tokens.map(({ raw }) => raw).join(""));
  return tokens.map((token, index) => <Fragment key={index}>{block(token, doc, depth)}</Fragment>);
}

/** The parts of a text; `none` if it is more than a page should read. */
function useTokens(text: string): Token[] | "none" | undefined {
  const [tokens, setTokens] = useState<Token[] | "none">();
  useEffect(() => {
    if (text.length > TEXT_MAX) {
      setTokens("none");
      return;
    }
    setTokens(undefined);
    const worker = new Worker(new URL("./markdown.worker.ts", import.meta.url), { type: "module" });
    const giveUp = () => {
      worker.terminate();
      setTokens("none");
    };
    const timer = setTimeout(giveUp, PATIENCE);
    worker.onerror = giveUp;
    worker.onmessage = ({ data }: MessageEvent<Token[] | "none">) => {
      clearTimeout(timer);
      setTokens(data);
    };
    worker.postMessage(text);
    return () => {
      clearTimeout(timer);
      worker.terminate();
    };
  }, [text]);
  return tokens;
}

export default function Markdown({ text }: { text: string }) {
  const tokens = useTokens(text);
  if (tokens === undefined) return <Waiting />;
  if (tokens === "none") {
    return (
      <pre className="code" tabIndex={0}>
        {visible(text)}
      </pre>
    );
  }
  return <div className="markdown">{all(tokens, { level: -1, tables: 0, isInLink: false }, 0)}</div>;
}
