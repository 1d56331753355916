// The events of an update: read until it ends, and folded into what happened to each resource.

import { useEffect, useState } from "react";
import { type Got, read } from "./api/client";
import type { StackName } from "./api/queries";
import { plain, typeIn } from "./format";
import { type Difference, at, differences, hasSecret, member, partsOf } from "./values";

/** What an event says of a resource: pulumi v3.274.1, `sdk/go/common/apitype/events.go`. */
interface Metadata {
  op: string;
  urn: string;
  type: string;
  old?: Side | null;
  new?: Side | null;
  diffs?: string[] | null;
  detailedDiff?: Record<string, { diffKind?: string; inputDiff?: boolean }> | null;
}

interface Side {
  id?: string;
  inputs?: Record<string, unknown> | null;
  outputs?: Record<string, unknown> | null;
  /** Paths whose differences the program hides. */
  hideDiffs?: (string | number)[][] | null;
}

export interface Event {
  sequence: number;
  timestamp: number;
  diagnosticEvent?: {
    urn?: string;
    prefix?: string;
    message: string;
    severity: string;
    ephemeral?: boolean;
  };
  stdoutEvent?: { message: string };
  resourcePreEvent?: { metadata: Metadata };
  resOutputsEvent?: { metadata: Metadata };
  resOpFailedEvent?: { metadata: Metadata; steps?: number };
  policyEvent?: { resourceUrn?: string; message: string; policyName: string; enforcementLevel: string };
}

/** Events that a page holds, at most. */
export const EVENTS_MAX = 50_000;

/** A page of events comes each second at first, and every five after half a minute: a person who watches stays cheap. */
const OFTEN = 1000;
const SELDOM = 5000;
const OFTEN_FOR = 30_000;

export interface Log {
  events: Event[];
  /** Whether everything was read, and the update has ended. */
  isDone: boolean;
  /** Whether there are more than a page holds. */
  isCut: boolean;
  error: unknown;
}

/** Waits, and then until the tab is looked at. */
async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
  while (document.hidden && !signal.aborted) {
    await new Promise<void>((resolve) => {
      document.addEventListener("visibilitychange", () => resolve(), { once: true });
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }
}

const EVENTS = "/api/stacks/{orgName}/{projectName}/{stackName}/update/{updateID}/events";

export function useEvents({ org, project, stack }: StackName, id: string | undefined): Log {
  const [log, setLog] = useState<Log>({ events: [], isDone: false, isCut: false, error: undefined });
  useEffect(() => {
    if (id === undefined) return;
    const abort = new AbortController();
    const { signal } = abort;
    const events: Event[] = [];
    setLog({ events: [], isDone: false, isCut: false, error: undefined });
    const names = { orgName: org, projectName: project, stackName: stack, updateID: id };
    const follow = async () => {
      const began = Date.now();
      let continuationToken: string | undefined;
      while (!signal.aborted) {
        let page: Got<typeof EVENTS>;
        try {
          page = await read(EVENTS, names, { continuationToken }, signal);
        } catch (error) {
          if (signal.aborted) return;
          setLog((before) => ({ ...before, error }));
          await pause(SELDOM, signal);
          continue;
        }
        const last = events.at(-1)?.sequence ?? -1;
        // The server gives them as the engine wrote them, so its document does not describe them.
        events.push(...(page.events as Event[]).filter((event) => event.sequence > last));
        const isCut = events.length >= EVENTS_MAX;
        const isDone = page.continuationToken === null;
        setLog({ events: [...events], isDone, isCut, error: undefined });
        if (isDone || isCut) return;
        continuationToken = page.continuationToken ?? undefined;
        // A full page is followed by another; an empty one by a wait.
        if (page.events.length === 0) await pause(Date.now() - began < OFTEN_FOR ? OFTEN : SELDOM, signal);
      }
    };
    void follow();
    return () => abort.abort();
  }, [org, project, stack, id]);
  return log;
}

/** What happened to a resource. */
export interface Step {
  urn: string;
  type: string;
  operation: string;
  status: "running" | "done" | "failed";
  began: number;
  ended: number | undefined;
  /** Whether a refresh read it, after which its operation is what the refresh found. */
  isRefresh: boolean;
  changed: Metadata;
}

const OF_REPLACE = new Set(["create-replacement", "delete-replaced", "replace", "read-replacement", "import-replacement"]);

/** The steps of an update, in the order in which they began. */
export function stepsOf(events: Event[]): Step[] {
  const steps = new Map<string, Step>();
  for (const event of events) {
    const found = event.resourcePreEvent ?? event.resOutputsEvent ?? event.resOpFailedEvent;
    const metadata = found?.metadata;
    if (!metadata) continue;
    const { urn } = metadata;
    const before = steps.get(urn);
    const operation = OF_REPLACE.has(metadata.op) ? "replace" : metadata.op;
    const status = event.resOpFailedEvent ? "failed" : event.resOutputsEvent ? "done" : "running";
    // The parts of a replacement are one step; its last part does not know what changed.
    const isPart = before?.operation === "replace" && operation === "replace";
    const hasMore = Boolean(metadata.detailedDiff ?? metadata.diffs?.length);
    steps.set(urn, {
      urn,
      type: metadata.type || typeIn(urn),
      operation,
      status: before?.status === "failed" ? "failed" : status,
      began: before?.began ?? event.timestamp,
      ended: status === "running" ? undefined : event.timestamp,
      isRefresh: event.resourcePreEvent ? operation === "refresh" : before?.isRefresh === true,
      changed: isPart && !hasMore ? before.changed : metadata,
    });
  }
  return [...steps.values()];
}

/** The time in which a step of a resource ran. */
export interface Span {
  key: number;
  urn: string;
  type: string;
  operation: string;
  status: Step["status"];
  began: number;
  /** Absent while it runs, or if the update ended before it. */
  ended: number | undefined;
}

/** When each step ran, in the order in which they began. A replacement has several. */
export function spansOf(events: Event[]): Span[] {
  const spans: Span[] = [];
  const open = new Map<string, Span>();
  for (const event of events) {
    const begins = event.resourcePreEvent?.metadata;
    if (begins) {
      const { urn, op: operation } = begins;
      const span: Span = {
        key: event.sequence,
        urn,
        type: begins.type || typeIn(urn),
        operation,
        status: "running",
        began: event.timestamp,
        ended: undefined,
      };
      spans.push(span);
      open.set(urn, span);
      continue;
    }
    const ends = event.resOutputsEvent ?? event.resOpFailedEvent;
    const span = ends && open.get(ends.metadata.urn);
    if (!span) continue;
    open.delete(span.urn);
    span.ended = event.timestamp;
    span.status = event.resOpFailedEvent ? "failed" : "done";
  }
  return spans;
}

const isWithin = (path: string, above: string) =>
  path === above || path.startsWith(`${above}.`) || path.startsWith(`${above}[`);

/**
 * The properties that a step changes, as the CLI shows them: pulumi v3.274.1, `TranslateDetailedDiff` in
 * `pkg/engine/detailedDiff.go`, and `getResourcePropertiesDetails` in `pkg/backend/display/object_diff.go`.
 */
export function changesOf(step: Step): Difference[] {
  const { old, new: next } = step.changed;
  const hidden = next?.hideDiffs ?? old?.hideDiffs ?? [];
  const all = shownChangesOf(step);
  if (hidden.length === 0) return all;
  return all.map((change) => {
    const parts = partsOf(change.path);
    const isHidden = hidden.some((path) => path.every((part, index) => part === "*" || String(part) === parts[index]));
    return isHidden ? { path: change.path, how: change.how, note: "hidden by the program" } : change;
  });
}

function shownChangesOf({ operation, isRefresh, changed }: Step): Difference[] {
  const { old, new: next, detailedDiff, diffs } = changed;
  if (operation === "create" || operation === "import" || operation === "read") {
    return Object.entries(next?.inputs ?? {}).map(([path, value]) => ({ path, how: "added", new: value }));
  }
  if (operation === "delete") {
    return Object.entries(old?.inputs ?? {}).map(([path, value]) => ({ path, how: "removed", old: value }));
  }
  if (detailedDiff && Object.keys(detailedDiff).length > 0) {
    return Object.entries(detailedDiff).map(([path, { diffKind = "update", inputDiff }]) => ({
      path,
      how: diffKind.startsWith("add") ? "added" : diffKind.startsWith("delete") ? "removed" : "changed",
      old: at(inputDiff ? old?.inputs : (old?.outputs ?? old?.inputs), path),
      // A refresh changes what is there, and not what the program wants.
      new: isRefresh && !inputDiff ? at(next?.outputs, path) : (at(next?.inputs, path) ?? at(next?.outputs, path)),
    }));
  }
  if (isRefresh) return differences(old?.outputs ?? {}, next?.outputs ?? {});
  const all = differences(old?.inputs ?? {}, next?.inputs ?? {});
  if (!diffs?.length) return all;
  const found = all.filter(({ path }) => diffs.some((name) => isWithin(path, member("", name))));
  // Events have no ciphertext by which two secrets would differ, so only the provider tells.
  const secrets = diffs.filter((name) => {
    const isSecret = hasSecret(old?.inputs?.[name]) || hasSecret(next?.inputs?.[name]);
    return isSecret && !found.some(({ path }) => isWithin(path, member("", name)));
  });
  return [...found, ...secrets.map((name) => ({ path: member("", name), how: "changed" as const, note: "a secret" }))];
}

/** A line of an update's output. */
export interface Line {
  key: number;
  at: number;
  severity: string;
  urn: string | undefined;
  text: string;
}

/** What the program, the providers and the engine said. */
export function linesOf(events: Event[]): Line[] {
  return events.flatMap((event): Line[] => {
    const { diagnosticEvent: said, stdoutEvent: printed, policyEvent: policy } = event;
    const line = { key: event.sequence, at: event.timestamp };
    if (said && !said.ephemeral) {
      // The severity is shown next to the text.
      const text = plain((said.prefix ?? "") + said.message).trimEnd().replace(/^(error|warning|info): /, "");
      return text.trim() === "" ? [] : [{ ...line, severity: said.severity, urn: said.urn || undefined, text }];
    }
    if (printed) {
      const text = plain(printed.message).trimEnd();
      return text.trim() === "" ? [] : [{ ...line, severity: "info", urn: undefined, text }];
    }
    if (policy) {
      const severity = policy.enforcementLevel === "mandatory" ? "error" : "warning";
      return [{ ...line, severity, urn: policy.resourceUrn, text: `${policy.policyName}: ${plain(policy.message)}` }];
    }
    return [];
  });
}
