// Definitions of environments: their sealed secrets, imports and lines, and the values that they make.

import { MASK, isObject, member } from "./values";

/** A place in a definition. Lines begin with 1. */
interface Place {
  line: number;
  column: number;
}

/** An error or a warning. */
export interface Diagnostic {
  range: { environment: string; begin: Place; end: Place };
  summary: string;
  severity: "error" | "warning";
}

/** A value of an environment. Lists and objects contain values of this type. */
interface Found {
  value?: unknown;
  secret?: boolean;
  /** Whether it is known only after opening. */
  unknown?: boolean;
  trace?: { def?: { environment: string; begin: Place } | null };
}

export type Properties = Record<string, Found>;

/** What the server says of a definition. */
export interface Checked {
  properties?: Properties;
  diagnostics?: Diagnostic[];
}

// A secret in a definition: `ciphertext: AQAA…`.
const SEALED = /(\bciphertext["']?\s*:\s*["']?)([A-Za-z0-9+/=_-]{16,})/g;
const STAND_IN = new RegExp(`(\\bciphertext["']?\\s*:\\s*["']?)${MASK}(\\d+)`, "g");

/** Short stand-ins for ciphertexts. Equal ones have the same. */
export class Seals {
  readonly #texts: string[] = [];

  hide(text: string): string {
    return text.replace(SEALED, (_, before: string, sealed: string) => {
      if (!this.#texts.includes(sealed)) this.#texts.push(sealed);
      return `${before}${MASK}${this.#texts.indexOf(sealed) + 1}`;
    });
  }

  restore(text: string): string {
    return text.replace(STAND_IN, (all, before: string, number: string) => {
      const sealed = this.#texts[Number(number) - 1];
      return sealed === undefined ? all : `${before}${sealed}`;
    });
  }
}

export const hasSealed = (text: string) => text.search(SEALED) >= 0;

/** An environment that a definition imports, as it is written. */
export interface Import {
  text: string;
  project: string;
  env: string;
}

// Environments without a project belong to this one.
const DEFAULT_PROJECT = "default";

const IMPORT = /^\s*-\s*["']?(?:([\w.-]+)\/)?([\w.-]+)(@[\w.-]+)?/;

/** The environments in the list `imports`, one a line. */
export function imports(text: string): Import[] {
  const found: Import[] = [];
  let isInside = false;
  for (const line of text.split("\n")) {
    if (/^[^\s#-]/.test(line)) isInside = /^imports\s*:/.test(line);
    else if (isInside) {
      const [all, project = DEFAULT_PROJECT, env, tag = ""] = IMPORT.exec(line) ?? [];
      if (all !== undefined && env !== undefined) found.push({ text: `${project}/${env}${tag}`, project, env });
    }
  }
  return found;
}

/** A value that has no parts, or a secret with all of its parts. */
export interface Leaf {
  path: string;
  value: unknown;
  isSecret: boolean;
  isUnknown: boolean;
  /** Where it is written. */
  from?: { environment: string; line: number };
}

/** The value alone, without where its parts come from. */
function bare({ value }: Found): unknown {
  if (Array.isArray(value)) return (value as Found[]).map(bare);
  if (isObject(value)) return Object.fromEntries(Object.entries(value as Properties).map(([key, it]) => [key, bare(it)]));
  return value;
}

/** All values, by path. */
export function leaves(properties: Properties | undefined): Leaf[] {
  const found: Leaf[] = [];
  const visit = (path: string, one: Found) => {
    const { value, trace } = one;
    const isWhole = one.secret || one.unknown;
    if (!isWhole && Array.isArray(value) && value.length > 0) {
      for (const [index, item] of (value as Found[]).entries()) visit(`${path}[${index}]`, item);
    } else if (!isWhole && isObject(value) && Object.keys(value).length > 0) {
      for (const [name, it] of Object.entries(value as Properties)) visit(member(path, name), it);
    } else {
      const from = trace?.def ? { environment: trace.def.environment, line: trace.def.begin.line } : undefined;
      found.push({ path, value: bare(one), isSecret: Boolean(one.secret), isUnknown: Boolean(one.unknown), from });
    }
  };
  for (const [name, it] of Object.entries(properties ?? {})) visit(member("", name), it);
  return found;
}

/** A line of two texts that are compared, with its number in the newer one, or in the older one if it is only there. */
export interface Line {
  how: "same" | "added" | "removed";
  text: string;
  number: number;
}

/** Pairs of lines that are compared at most. Beyond, all lines between the first and the last difference differ. */
const PAIRS_MAX = 4_000_000;

/** All lines of two texts, in order. */
export function lines(old: string, next: string): Line[] {
  const [a, b] = [old.replace(/\n$/, "").split("\n"), next.replace(/\n$/, "").split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--;
    endB--;
  }
  const [height, width] = [endA - start, endB - start];
  // How many lines are equal from here on.
  const equal = height * width <= PAIRS_MAX ? new Uint32Array((height + 1) * (width + 1)) : undefined;
  const at = (i: number, j: number) => equal?.[(i - start) * (width + 1) + (j - start)] ?? 0;
  if (equal) {
    for (let i = endA - 1; i >= start; i--) {
      for (let j = endB - 1; j >= start; j--) {
        equal[(i - start) * (width + 1) + (j - start)] =
          a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
      }
    }
  }
  const same = (j: number): Line => ({ how: "same", text: b[j] ?? "", number: j + 1 });
  const found = Array.from({ length: start }, (_, j) => same(j));
  let [i, j] = [start, start];
  while (i < endA || j < endB) {
    if (equal && i < endA && j < endB && a[i] === b[j]) {
      found.push(same(j));
      i++;
      j++;
    } else if (i < endA && (j >= endB || at(i + 1, j) >= at(i, j + 1))) {
      found.push({ how: "removed", text: a[i] ?? "", number: i + 1 });
      i++;
    } else {
      found.push({ how: "added", text: b[j] ?? "", number: j + 1 });
      j++;
    }
  }
  for (; j < b.length; j++) found.push(same(j));
  return found;
}
