// Stacks and states in one list.

import { useQueries, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useState } from "react";
import * as queries from "../api/queries";
import type { Stack } from "../api/queries";
import { count, instant, number, visible } from "../format";
import type { ListSearch } from "../router";
import { Icon } from "../ui/icons";
import {
  Badge,
  Empty,
  Failure,
  Groups,
  Labels,
  More,
  Notice,
  Result,
  Search,
  Select,
  Time,
  Waiting,
  groupOf,
  hasWords,
  useTitle,
  useTyped,
} from "../ui/parts";

interface Row {
  id: string;
  kind: "stack" | "state";
  project: string;
  name: string;
  isRunning: boolean;
  /** Whether a person holds the stack by hand. */
  isHeld: boolean;
  /** Who locks the state, or updates the stack. */
  holder: string | undefined;
  changed: number;
  resources: number | undefined;
  /** How the last update of a stack ended. */
  result: string | undefined;
  /** The tags of a stack, or the labels of a state. */
  labels: Record<string, unknown>;
}

/** Rows that are drawn at first, and with each press of the button. */
const SHOWN = 200;

/** Tags and labels that rows can be grouped by. */
const GROUPS_MAX = 50;

/** Running stacks whose holder is asked for. */
const HOLDERS_MAX = 20;

/** Without the tags that clients set by themselves, such as `pulumi:runtime`. */
const ownOf = (labels: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(labels).filter(([key]) => !key.includes(":")));

/** Tags and labels that rows can be grouped by: people's own before those of clients. */
function keysOf(rows: Row[]): [string, string][] {
  const kinds = new Map<string, Set<Row["kind"]>>();
  for (const { kind, labels } of rows) {
    for (const key of Object.keys(labels)) kinds.set(key, (kinds.get(key) ?? new Set<Row["kind"]>()).add(kind));
  }
  const names = { stack: "Tag", state: "Label" };
  return [...kinds]
    .sort(([a], [b]) => Number(a.includes(":")) - Number(b.includes(":")) || a.localeCompare(b))
    .slice(0, GROUPS_MAX)
    .map(([key, of]) => [key, `${of.size > 1 ? "Tag or label" : names[[...of][0] ?? "state"]} ${visible(key)}`]);
}

/** Whether an update, a client or a person has it now. */
const isTaken = ({ isRunning, isHeld, holder }: Row) => isRunning || isHeld || holder !== undefined;

/** What needs a person comes first. */
const rank = ({ result, isRunning, kind }: Row) =>
  isRunning ? 2 : result === "failed" ? 0 : result === "cancelled" ? 1 : kind === "stack" ? 3 : 4;

const ORDERS: Record<string, (a: Row, b: Row) => number> = {
  name: (a, b) => a.project.localeCompare(b.project) || a.name.localeCompare(b.name),
  changed: (a, b) => b.changed - a.changed,
  // What never changed is the oldest of all.
  oldest: (a, b) => a.changed - b.changed,
  result: (a, b) => rank(a) - rank(b) || b.changed - a.changed,
  resources: (a, b) => (b.resources ?? -1) - (a.resources ?? -1),
};

/** Who updates each stack. */
const holdersOf = (found: { data: Stack | undefined }[]) =>
  new Map(found.map(({ data }) => [`${data?.projectName}/${data?.stackName}`, data?.currentOperation?.author]));

function useRows(org: string, project: string | undefined) {
  const stacks = useQuery(queries.stacks(org, project));
  const states = useQuery(queries.states(org, project));
  const locks = useQuery(queries.locks(org));
  const running = (stacks.data?.items ?? []).filter((one) => one.lastUpdate === 0).slice(0, HOLDERS_MAX);
  const holders = useQueries({
    queries: running.map((one) => queries.stack({ org, project: one.projectName, stack: one.stackName })),
    combine: holdersOf,
  });
  const rows = useMemo(() => {
    const held = new Map(locks.data?.items.map(({ stateId, lock }) => [stateId, visible(lock.who || lock.principal)]));
    return [
      ...(stacks.data?.items ?? []).map(
        (one): Row => ({
          id: `stack ${one.id}`,
          kind: "stack",
          project: one.projectName,
          name: one.stackName,
          isRunning: one.lastUpdate === 0,
          isHeld: one.onHold ?? false,
          holder: holders.get(`${one.projectName}/${one.stackName}`),
          changed: one.lastUpdate === 0 ? Date.now() : (one.lastUpdate ?? 0) * 1000,
          resources: one.resourceCount ?? undefined,
          result: one.lastUpdateResult ?? undefined,
          labels: one.tags ?? {},
        }),
      ),
      ...(states.data?.items ?? []).map(
        (one): Row => ({
          id: `state ${one.id}`,
          kind: "state",
          project: one.project,
          name: one.state,
          isRunning: false,
          isHeld: false,
          holder: held.get(one.id),
          changed: one.lastWrite ? instant(one.lastWrite) : 0,
          resources: one.resourceCount ?? undefined,
          result: undefined,
          labels: one.labels ?? {},
        }),
      ),
    ];
  }, [stacks.data, states.data, locks.data, holders]);
  return {
    rows,
    isWaiting: !(stacks.data || stacks.error) || !(states.data || states.error),
    errors: [stacks, states].filter((query) => query.error),
    more: Boolean(stacks.data?.more || states.data?.more),
  };
}

function Item({ org, row, isGrouped }: { org: string; row: Row; isGrouped: boolean }) {
  const title = isGrouped ? row.name : `${row.project}/${row.name}`;
  return (
    <li className="item">
      <span className="item-kind" title={row.kind === "stack" ? "Pulumi stack" : "Terraform state"}>
        <Icon name={row.kind} />
        <span className="unseen">{row.kind}</span>
      </span>
      <span className="item-name">
        {row.kind === "stack" ? (
          <Link
            className="strong"
            to="/$org/$project/$stack"
            params={{ org, project: row.project, stack: row.name }}
          >
            {title}
          </Link>
        ) : (
          <Link
            className="strong"
            to="/$org/-/states/$project/$state"
            params={{ org, project: row.project, state: row.name }}
          >
            {title}
          </Link>
        )}
        <Labels of={ownOf(row.labels)} />
      </span>
      <span className="item-status">
        {row.isRunning && (
          <Badge tone="busy" icon="running">
            {row.holder ?? "Running"}
          </Badge>
        )}
        {row.isHeld && (
          <Badge tone="warn" icon="lock">
            On hold
          </Badge>
        )}
        {!row.isRunning && row.holder !== undefined && (
          <Badge tone="warn" icon="lock">
            {row.holder}
          </Badge>
        )}
        {!row.isRunning && row.result !== undefined && <Result result={row.result} />}
      </span>
      <span className="item-count">{row.resources === undefined ? "–" : count(row.resources, "resource")}</span>
      <span className="item-time faint">{row.isRunning ? "now" : <Time at={row.changed / 1000} />}</span>
    </li>
  );
}

export function List() {
  const { org } = useParams({ from: "/$org/-/stacks" });
  const search = useSearch({ from: "/$org/-/stacks" });
  const navigate = useNavigate({ from: "/$org/-/stacks" });
  const set = (changed: Partial<ListSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...changed }), replace: true });
  const { rows, isWaiting, errors, more } = useRows(org, search.project);
  const [typed, setTyped] = useTyped(search.q ?? "", (q) => set({ q: q || undefined }));
  const words = useDeferredValue(typed);
  const [shown, setShown] = useState(SHOWN);
  useTitle("Stacks and states", org);

  const sort = search.sort ?? "name";
  const group = search.group ?? (sort === "name" ? "" : "none");
  const projects = useMemo(() => [...new Set(rows.map((row) => row.project))].sort(), [rows]);
  const keys = useMemo(() => keysOf(rows), [rows]);
  const found = useMemo(() => {
    const isOf = (row: Row) => !search.result || (!row.isRunning && row.result === search.result);
    const wanted = rows.filter(
      (row) =>
        (!search.kind || row.kind === search.kind) &&
        isOf(row) &&
        (!search.used || (search.used === "yes") === isTaken(row)) &&
        hasWords(words, `${row.project}/${row.name} ${row.holder ?? ""}`, row.labels),
    );
    return wanted.sort(ORDERS[sort]);
  }, [rows, words, search.kind, search.result, search.used, sort]);
  const page = found.slice(0, shown);

  return (
    <div className="page">
      <div className="title-row">
        <h1>Stacks and states</h1>
        {!isWaiting && <span className="faint">{number(found.length)} of {number(rows.length)}</span>}
      </div>
      <div className="filters" role="search">
        <Search
          label="Filter by name, tag or label"
          placeholder="Name, tag, label or holder"
          value={typed}
          onChange={setTyped}
        />
        <Select
          label="Kind"
          value={search.kind ?? ""}
          onChange={(kind) => set({ kind: (kind || undefined) as ListSearch["kind"] })}
          options={[
            ["", "Both"],
            ["stack", "Stacks"],
            ["state", "States"],
          ]}
        />
        <Select
          label="Project"
          value={search.project ?? ""}
          onChange={(project) => set({ project: project || undefined })}
          options={[
            ["", "All"],
            ...[...new Set([...projects, ...(search.project ? [search.project] : [])])].map(
              (name): [string, string] => [name, name],
            ),
          ]}
        />
        <Select
          label="Last result"
          value={search.result ?? ""}
          onChange={(result) => set({ result: (result || undefined) as ListSearch["result"] })}
          options={[
            ["", "Any"],
            ["failed", "Failed"],
            ["cancelled", "Cancelled"],
            ["succeeded", "Succeeded"],
          ]}
        />
        <Select
          label="In use"
          value={search.used ?? ""}
          onChange={(used) => set({ used: (used || undefined) as ListSearch["used"] })}
          options={[
            ["", "Any"],
            ["yes", "Yes"],
            ["no", "No"],
          ]}
        />
        <Select
          label="Sort by"
          value={sort}
          onChange={(sort) => set({ sort: (sort === "name" ? undefined : sort) as ListSearch["sort"] })}
          options={[
            ["name", "Name"],
            ["changed", "Last change"],
            ["oldest", "Oldest change"],
            ["result", "Last result"],
            ["resources", "Resources"],
          ]}
        />
        <Select
          label="Group by"
          value={group}
          onChange={(group) => set({ group: group || undefined, ...(group === "" && { sort: undefined }) })}
          options={[
            ["", "Project"],
            ["none", "Nothing"],
            ...keys,
          ]}
        />
      </div>
      {errors.map((query, index) => (
        <Failure key={index} error={query.error} again={() => void query.refetch()} />
      ))}
      {more && (
        <Notice>
          Here are the first {number(queries.LIST_MAX)} of each kind, by name. Choose a project to see all of it.
        </Notice>
      )}
      {isWaiting ? (
        <Waiting rows={8} />
      ) : found.length === 0 && errors.length === 0 ? (
        <Empty icon="search" title={rows.length === 0 ? "There is nothing here yet" : "Nothing matches these filters"}>
          {rows.length > 0 && (
            <Link to="/$org/-/stacks" params={{ org }}>
              Remove the filters
            </Link>
          )}
        </Empty>
      ) : (
        <Groups rows={page} by={group} nameOf={(row) => groupOf(group, row.project, row.labels)}>
          {(row) => <Item key={row.id} org={org} row={row} isGrouped={group === ""} />}
        </Groups>
      )}
      {found.length > shown && <More isLoading={false} onPress={() => setShown(shown + SHOWN)} />}
    </div>
  );
}
