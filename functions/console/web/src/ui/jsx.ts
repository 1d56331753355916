// What all elements of the console are made with, in place of React's own: see `vite.config.mjs`. Texts that a person
// sees or hears are shown by `visible`, so that no page can forget it. Values of fields stay as they are.

import type { ElementType, Key, ReactElement } from "react";
import * as react from "react/jsx-runtime";
import { visible } from "../format";

export { Fragment } from "react/jsx-runtime";

type Props = Record<string, unknown>;

/** Attributes that are shown, or read aloud. */
const SHOWN = new Set(["title", "alt", "placeholder", "textValue"]);

const isShown = (name: string) => SHOWN.has(name) || name.startsWith("aria-");

/** The texts among the children. Elements in them were made here too. */
function safe(children: unknown): unknown {
  if (typeof children === "string") return visible(children);
  if (!Array.isArray(children)) return children;
  const shown = children.map(safe);
  // React knows a list again.
  return shown.some((child, index) => child !== children[index]) ? shown : children;
}

function shown(props: Props): Props {
  let changed: Props | undefined;
  for (const [name, value] of Object.entries(props)) {
    const isText = typeof value === "string" && isShown(name);
    const next = name === "children" ? safe(value) : isText ? visible(value) : value;
    if (next !== value) changed = { ...(changed ?? props), [name]: next };
  }
  return changed ?? props;
}

export const jsx = (type: ElementType, props: Props, key?: Key): ReactElement => react.jsx(type, shown(props), key);

export const jsxs = (type: ElementType, props: Props, key?: Key): ReactElement => react.jsxs(type, shown(props), key);

/** Of the server for development. */
export const jsxDEV = (type: ElementType, props: Props, key?: Key, isList = false): ReactElement =>
  isList ? jsxs(type, props, key) : jsx(type, props, key);
