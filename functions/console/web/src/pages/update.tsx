// One update or preview: what it did to each resource, and what was said; live while it runs.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { Button } from "react-aria-components";
import { ApiError } from "../api/client";
import * as queries from "../api/queries";
import type { StackName, Update } from "../api/queries";
import {
  EVENTS_MAX,
  type Line,
  type Span,
  type Step,
  changesOf,
  linesOf,
  spansOf,
  stepsOf,
  useEvents,
} from "../events";
import { done, duration, kind, nameIn, number, plain, shortType, visible } from "../format";
import type { UpdateSearch } from "../router";
import { Diff } from "../ui/diff";
import { Icon } from "../ui/icons";
import {
  Badge,
  Changes,
  Empty,
  Facts,
  Failure,
  Loaded,
  More,
  Notice,
  Result,
  Search,
  Select,
  Table,
  Time,
  type Tone,
  Waiting,
  useNow,
  useTitle,
} from "../ui/parts";
import { useStackName } from "./stack";

/** Steps and lines that are drawn at first, and with each press of the button. */
const SHOWN = 200;

const TONES = { running: "busy", done: "good", failed: "bad", unfinished: "warn" } as const;

function StepRow({
  step,
  isLive,
  isOpen,
  onToggle,
  name,
}: {
  step: Step;
  isLive: boolean;
  isOpen: boolean;
  onToggle: () => void;
  name: StackName;
}) {
  const status = step.status === "running" && !isLive ? "unfinished" : step.status;
  const took = step.ended === undefined ? undefined : step.ended - step.began;
  return (
    <li className={`step${isOpen ? " open" : ""}`}>
      <Button className="step-head" aria-expanded={isOpen} onPress={onToggle}>
        <Icon name={isOpen ? "down" : "right"} />
        <span className={`sign op-${step.operation}`} aria-hidden="true">
          {{ create: "+", update: "~", delete: "−", replace: "±", same: " " }[step.operation] ?? "·"}
        </span>
        <span className="ellipsis strong">{nameIn(step.urn)}</span>
        <span className="faint ellipsis type">{shortType(step.type)}</span>
        <span className="end row tight">
          {took !== undefined && took > 0 && <span className="faint">{duration(took)}</span>}
          <Badge tone={step.operation === "same" && status === "done" ? "plain" : TONES[status]}>
            {status === "done" ? done(step.operation) : status}
          </Badge>
        </span>
      </Button>
      {isOpen && (
        <div className="step-body">
          <Diff of={changesOf(step)} />
          <p>
            <Link to="/$org/$project/$stack/resources" params={name} search={{ urn: step.urn }}>
              The resource as it is now
            </Link>
          </p>
        </div>
      )}
    </li>
  );
}

function Steps({ steps, search, name, isLive }: { steps: Step[]; search: UpdateSearch; name: StackName; isLive: boolean }) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set(search.urn ? [search.urn] : []));
  const [max, setMax] = useState(SHOWN);
  const isAll = search.show === "all";
  const words = (search.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const shown = isAll ? steps : steps.filter((step) => step.operation !== "same" || step.status === "failed");
  const wanted = shown.filter((step) => {
    const text = `${nameIn(step.urn)} ${step.type} ${step.operation} ${step.status}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  if (shown.length > 0 && wanted.length === 0) return <Empty icon="search" title="No resource matches the filter" />;
  if (wanted.length === 0) {
    return isLive ? (
      <Empty icon="running" title="Nothing has changed yet" />
    ) : (
      <Empty icon="check" title="No resource was changed">
        {steps.length > 0 && `${number(steps.length)} are as they were.`}
      </Empty>
    );
  }
  const toggle = (urn: string) => {
    const next = new Set(open);
    if (!next.delete(urn)) next.add(urn);
    setOpen(next);
  };
  return (
    <>
      <ul className="steps">
        {wanted.slice(0, max).map((step) => (
          <StepRow
            key={step.urn}
            step={step}
            isLive={isLive}
            isOpen={open.has(step.urn)}
            onToggle={() => toggle(step.urn)}
            name={name}
          />
        ))}
      </ul>
      {wanted.length > max && <More isLoading={false} onPress={() => setMax(max + SHOWN)} />}
    </>
  );
}

/** How long a span took, in seconds; up to `now` if it runs. */
const tookOf = ({ began, ended }: Span, now: number) => Math.max(0, (ended ?? now) - began);

/** Which step of which resource ran when. The engine tells times in whole seconds. */
function Timeline({
  spans,
  search,
  ended,
  onChange,
}: {
  spans: Span[];
  search: UpdateSearch;
  /** When the update ended, or now, in seconds. */
  ended: number;
  onChange: Change;
}) {
  const [max, setMax] = useState(SHOWN);
  const words = (search.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const began = spans[0]?.began ?? ended;
  const end = spans.reduce((latest, span) => Math.max(latest, span.ended ?? ended), began + 1);
  const wanted = spans.filter((span) => {
    const text = `${nameIn(span.urn)} ${span.type} ${span.operation} ${span.status}`.toLowerCase();
    // What is as it was, and took no time, is not worth a line.
    const isEvent = span.operation !== "same" || span.status === "failed" || tookOf(span, ended) > 0;
    return isEvent && words.every((word) => text.includes(word));
  });
  if (search.sort === "slowest") wanted.sort((a, b) => tookOf(b, ended) - tookOf(a, ended));
  const percent = (seconds: number) => `${(Math.min(1, Math.max(0, seconds / (end - began))) * 100).toFixed(2)}%`;
  return (
    <>
      <div className="filters pad">
        <Select
          label="Order"
          value={search.sort ?? ""}
          onChange={(sort) => onChange({ sort: sort === "slowest" ? sort : undefined })}
          options={[
            ["", "As they began"],
            ["slowest", "Slowest first"],
          ]}
        />
        <span className="faint">{duration(end - began)} from the first step to the last</span>
      </div>
      {wanted.length === 0 ? (
        <Empty icon="clock" title="No step to show" />
      ) : (
        <div className="timeline">
          <Table label="Steps by time" head={["Resource", "Step", "Began after", "Took", "When"]}>
            {wanted.slice(0, max).map((span) => (
              <tr key={span.key}>
                <th scope="row">
                  {nameIn(span.urn)} <span className="faint type">{shortType(span.type)}</span>{" "}
                  {span.status === "failed" && <Badge tone="bad">failed</Badge>}
                </th>
                <td>
                  <span className={`op-${span.operation}`}>{visible(span.operation)}</span>
                </td>
                <td>{duration(span.began - began)}</td>
                <td>{span.ended === undefined ? "not ended" : took(tookOf(span, ended))}</td>
                <td className="bars">
                  <div className="bar-box" aria-hidden="true">
                    <div
                      className={`bar-of ${BARS[span.status]}`}
                      style={{ insetInlineStart: percent(span.began - began), width: percent(tookOf(span, ended)) }}
                    />
                  </div>
                </td>
              </tr>
            ))}
          </Table>
        </div>
      )}
      {wanted.length > max && <More isLoading={false} onPress={() => setMax(max + SHOWN)} />}
    </>
  );
}

const BARS: Record<Span["status"], Tone> = { running: "busy", done: "good", failed: "bad" };

const took = (seconds: number) => (seconds < 1 ? "under 1 s" : duration(seconds));

const SEVERITIES: Record<string, "bad" | "warn" | "plain"> = { error: "bad", warning: "warn" };

function Lines({ lines }: { lines: Line[] }) {
  const [max, setMax] = useState(SHOWN);
  if (lines.length === 0) return <Empty icon="check" title="Nothing was said" />;
  return (
    <>
      <ul className="lines">
        {lines.slice(0, max).map((line) => (
          <li key={line.key} className={`line ${SEVERITIES[line.severity] ?? "plain"}`}>
            <Badge tone={SEVERITIES[line.severity] ?? "plain"}>{line.severity.replace("#err", "")}</Badge>
            <div className="line-text">
              {line.urn && <span className="faint">{nameIn(line.urn)}</span>}
              <pre>{line.text}</pre>
            </div>
          </li>
        ))}
      </ul>
      {lines.length > max && <More isLoading={false} onPress={() => setMax(max + SHOWN)} />}
    </>
  );
}

const LINKS = /^https:\/\//;

/** Where it came from, as the client says. Only addresses with HTTPS are links. */
function originOf(environment: Record<string, string>): [string, ReactNode][] {
  const facts: [string, ReactNode][] = [];
  const add = (name: string, value: string | undefined, href?: string) => {
    if (!value) return;
    const isLink = href !== undefined && LINKS.test(href);
    facts.push([
      name,
      isLink ? (
        <a href={href} rel="noreferrer" target="_blank">
          {visible(value)}
        </a>
      ) : (
        visible(value)
      ),
    ]);
  };
  const commit = environment["git.head"];
  const dirty = environment["git.dirty"] === "true" ? ", with changes" : "";
  add("Branch", environment["git.headName"]?.replace("refs/heads/", ""));
  add("Commit", commit && `${commit.slice(0, 10)}${dirty}`);
  add("Author", environment["git.author"]);
  add("CI", environment["ci.system"], environment["ci.build.url"]);
  add("Pull request", environment["ci.pr.number"]);
  add("Client", environment["pulumi.version"]);
  return facts;
}

/** What is known of an update that may still run. */
interface Shown {
  id: string;
  kind: string;
  result: string;
  by: string;
  message: string;
  began: number;
  ended: number | undefined;
  /** The version that it made or will make; for a preview, the one that it started from. */
  version: number;
  isPreview: boolean;
  environment: Record<string, string>;
  counts: Record<string, number> | null | undefined;
}

const shownOf = (update: Update): Shown => ({
  id: update.updateID,
  kind: update.info.kind,
  result: queries.resultOf(update.info),
  by: update.requestedBy.githubLogin,
  message: update.info.message,
  began: update.info.startTime,
  ended: update.info.endTime || undefined,
  version: update.version,
  isPreview: update.info.kind === "preview",
  environment: update.info.environment,
  counts: update.info.resourceChanges,
});

/** Changes a part of what the address says. */
type Change = (changed: Partial<UpdateSearch>) => void;

/** The version that a preview started from. */
function FromVersion({ name, version }: { name: StackName; version: number }) {
  if (version === 0) return "the empty stack";
  return (
    <Link to="/$org/$project/$stack/updates/$version" params={{ ...name, version: String(version) }}>
      version {version}
    </Link>
  );
}

/** Steps from which on they have a filter. */
const FILTERED_FROM = 10;

function OneUpdate({
  name,
  update,
  search,
  onChange,
}: {
  name: StackName;
  update: Shown;
  search: UpdateSearch;
  onChange: Change;
}) {
  const log = useEvents(name, update.id);
  const client = useQueryClient();
  const isLive = update.result === "running" || update.result === "in-progress";
  const now = useNow(isLive ? 1000 : 60_000);
  const steps = useMemo(() => stepsOf(log.events), [log.events]);
  const lines = useMemo(() => linesOf(log.events), [log.events]);
  const spans = useMemo(() => spansOf(log.events), [log.events]);
  const counts = useMemo(() => {
    const all: Record<string, number> = {};
    for (const { operation } of steps) all[operation] = (all[operation] ?? 0) + 1;
    return all;
  }, [steps]);
  const errors = lines.filter((line) => line.severity === "error");
  const title = update.isPreview || update.version === 0 ? kind(update.kind) : `${kind(update.kind)} ${update.version}`;
  useTitle(title, `${name.project}/${name.stack}`);

  // At its end the history has it, and the stack has another version.
  const isOver = isLive && log.isDone;
  useEffect(() => {
    if (isOver) void client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "export" });
  }, [isOver, client]);

  const ended = update.ended ?? (isLive ? now / 1000 : undefined);
  const took = ended && ended - update.began;
  const same = counts.same ?? 0;
  const tabs: [UpdateSearch["show"], string, number][] = [
    [undefined, "Changes", steps.length - same],
    ["diagnostics", "Output", lines.length],
    ["all", "All resources", steps.length],
    ...(spans.length > 0 || search.show === "timeline"
      ? ([["timeline", "Timeline", spans.length]] as [UpdateSearch["show"], string, number][])
      : []),
  ];
  return (
    <>
      <div className="title-row">
        <h2 className="big">{title}</h2>
        <Result result={update.result} />
        {isLive && !log.isDone && <span className="faint">followed live</span>}
      </div>
      {update.message && <p className="lead">{plain(update.message)}</p>}
      <div className="card pad">
        <Facts
          of={[
            ["By", update.by],
            ["Started", <Time key="s" at={update.began} />],
            ...(took ? ([[isLive ? "Running for" : "Took", duration(took)]] as [string, ReactNode][]) : []),
            ["Changes", <Changes key="c" counts={update.counts ?? counts} />],
            ...(update.isPreview ? ([["Starts from", <FromVersion key="f" name={name} version={update.version} />]] as [string, ReactNode][]) : []),
            ...originOf(update.environment),
          ]}
        />
        {!update.isPreview && update.version > 1 && update.ended !== undefined && (
          <p className="row">
            <Link
              className="button small"
              to="/$org/$project/$stack/versions"
              params={name}
              search={{ from: String(update.version - 1), to: String(update.version) }}
            >
              Compare the versions before and after it
            </Link>
          </p>
        )}
      </div>
      {errors.length > 0 && search.show !== "diagnostics" && (
        <Notice tone="bad">
          <p>
            <strong>{errors[0]?.urn ? nameIn(errors[0].urn) : "Error"}:</strong> {errors[0]?.text.slice(0, 500)}
          </p>
          <Button className="button small" onPress={() => onChange({ show: "diagnostics" })}>
            All that was said
          </Button>
        </Notice>
      )}
      {log.error !== undefined && (log.error instanceof ApiError && log.error.status === 404 ? (
        <Notice>The log of this update is no longer kept.</Notice>
      ) : (
        <Failure error={log.error} />
      ))}
      {log.isCut && <Notice>Here are the first {number(EVENTS_MAX)} events of this update. The rest is not shown.</Notice>}
      <div className="tabs" role="group" aria-label="What is shown">
        {tabs.map(([show, text, count]) => (
          <Button
            key={text}
            className="tab"
            aria-pressed={search.show === show}
            onPress={() => onChange({ show })}
          >
            {text} <span className="count">{number(count)}</span>
          </Button>
        ))}
      </div>
      <section className="card" aria-label={tabs.find(([show]) => show === search.show)?.[1]} aria-busy={!log.isDone && steps.length === 0}>
        {search.show !== "diagnostics" && (steps.length >= FILTERED_FROM || search.q) && (
          <div className="filters">
            <Search
              label="Filter by name, type or operation"
              value={search.q ?? ""}
              onChange={(q) => onChange({ q: q || undefined })}
            />
          </div>
        )}
        {log.events.length === 0 && !log.isDone && log.error === undefined ? (
          <Waiting />
        ) : search.show === "diagnostics" ? (
          <Lines lines={lines} />
        ) : search.show === "timeline" ? (
          <Timeline spans={spans} search={search} ended={update.ended ?? now / 1000} onChange={onChange} />
        ) : (
          <Steps steps={steps} search={search} name={name} isLive={isLive} />
        )}
      </section>
    </>
  );
}

const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

/** An update by its version, or by its ID; also the one that runs, which will make the next version. */
export function UpdatePage() {
  const { version } = useParams({ from: "/$org/$project/$stack/updates/$version" });
  const search = useSearch({ from: "/$org/$project/$stack/updates/$version" });
  const navigate = useNavigate({ from: "/$org/$project/$stack/updates/$version" });
  const name = useStackName();
  const stack = useQuery(queries.stack(name)).data;
  const isById = ID.test(version);
  const isRunning =
    Boolean(stack?.currentOperation) && (version === "latest" || Number(version) === (stack?.version ?? 0) + 1);
  const entry = useQuery({ ...queries.update(name, version), enabled: stack !== undefined && !isRunning && !isById });
  const onChange: Change = (changed) =>
    void navigate({ search: (before) => ({ ...before, ...changed }), replace: true, resetScroll: false });
  if (!stack) return <Waiting />;
  if (isById || isRunning) {
    const id = isById ? version : stack.activeUpdate;
    return <ById key={id} name={name} id={id} isPreview={false} search={search} onChange={onChange} />;
  }
  return (
    <Loaded of={entry}>
      {(update) => (
        <OneUpdate key={update.updateID} name={name} update={shownOf(update)} search={search} onChange={onChange} />
      )}
    </Loaded>
  );
}

/** An update or a preview by its ID, as long as it is kept. */
function ById({
  name,
  id,
  isPreview,
  search,
  onChange,
}: {
  name: StackName;
  id: string;
  /** Whether the address is that of a preview. */
  isPreview: boolean;
  search: UpdateSearch;
  onChange: Change;
}) {
  const found = useQuery(queries.updateById(name, id));
  if (!found.data && found.error instanceof ApiError && found.error.status === 404) {
    return <NotKept name={name} isPreview={isPreview} />;
  }
  return (
    <Loaded of={found}>
      {(update) => <OneUpdate name={name} update={shownOf(update)} search={search} onChange={onChange} />}
    </Loaded>
  );
}

/** Instead of an update or a preview that was erased, or never was. */
function NotKept({ name, isPreview }: { name: StackName; isPreview: boolean }) {
  useTitle(isPreview ? "Preview" : "Update", `${name.project}/${name.stack}`);
  return (
    <Empty icon="clock" title={isPreview ? "This preview is no longer kept" : "No update with this ID is kept"}>
      <p>
        {isPreview
          ? "The server erases a preview with its log, after 90 days at most. Run pulumi preview for a new one."
          : "The server erases the log of an update after a while. Its version stays in the activity of the stack."}
      </p>
      <p>
        <Link to="/$org/$project/$stack/updates" params={name}>
          Updates and previews of this stack
        </Link>
      </p>
    </Empty>
  );
}

export function PreviewPage() {
  const { id } = useParams({ from: "/$org/$project/$stack/previews/$id" });
  const search = useSearch({ from: "/$org/$project/$stack/previews/$id" });
  const navigate = useNavigate({ from: "/$org/$project/$stack/previews/$id" });
  const name = useStackName();
  const onChange: Change = (changed) =>
    void navigate({ search: (before) => ({ ...before, ...changed }), replace: true, resetScroll: false });
  if (!ID.test(id)) return <NotKept name={name} isPreview />;
  return <ById key={id} name={name} id={id} isPreview search={search} onChange={onChange} />;
}
