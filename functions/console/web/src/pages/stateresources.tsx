// The resources of a Terraform state, as a tree by module; and one of them.

import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useRouter, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, Suspense, lazy, useEffect, useMemo, useRef, useState } from "react";
import { Button } from "react-aria-components";
import { ApiError, address as urlOf, reveal } from "../api/client";
import * as queries from "../api/queries";
import type {
  State,
  StateNeighbourhood,
  StateResource,
  StateResourceAround,
  StateResourceChange,
  StateResourceValues,
} from "../api/queries";
import { terraformPage } from "../clouds";
import { count, number, visible } from "../format";
import { useRightsOnState } from "../rights";
import { type Drawing, Hops, draw } from "../ui/drawing";
import { Icon } from "../ui/icons";
import {
  Act,
  Badge,
  Card,
  Code,
  Copy,
  Empty,
  Facts,
  Failure,
  Loaded,
  More,
  Notice,
  Search,
  Table,
  Time,
  Waiting,
  useTitle,
  useTyped,
} from "../ui/parts";
import { SENSITIVE, isObject } from "../values";

const Graph = lazy(() => import("../ui/graph"));

const STATE = "/$org/-/states/$project/$state";
const ROUTE = `${STATE}/resources` as const;

/** A module of the tree, or a resource. */
interface Row {
  key: string;
  depth: number;
  text: string;
  /** The number of resources below a module. */
  size: number;
  resource?: StateResource;
  module?: Module;
}

interface Module {
  path: string;
  name: string;
  modules: Map<string, Module>;
  resources: StateResource[];
  size: number;
}

/** The modules that lead to one: `module.a["b.c"].module.d` has two. */
export function modulesOf(path: string): string[] {
  const found: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at < path.length; at++) {
    const letter = path[at];
    if (isQuoted && letter === "\\") at++;
    else if (letter === '"') isQuoted = !isQuoted;
    else if (!isQuoted && at > start && path.startsWith(".module.", at)) {
      found.push(path.slice(start, at));
      start = at + 1;
    }
  }
  return [...found, path.slice(start)];
}

function treeOf(resources: StateResource[]): Module {
  const root: Module = { path: "", name: "", modules: new Map(), resources: [], size: 0 };
  const known = new Map<string, Module[]>([["", [root]]]);
  for (const resource of resources) {
    const path = resource.module ?? "";
    let way = known.get(path);
    if (!way) {
      way = [root];
      for (const name of modulesOf(path)) {
        const above = way[way.length - 1] ?? root;
        let next = above.modules.get(name);
        if (!next) {
          next = { path: above.path ? `${above.path}.${name}` : name, name, modules: new Map(), resources: [], size: 0 };
          above.modules.set(name, next);
        }
        way.push(next);
      }
      known.set(path, way);
    }
    for (const module of way) module.size++;
    way[way.length - 1]?.resources.push(resource);
  }
  return root;
}

/** The open part of the tree. The resources of a module come before the modules in it. */
function rowsOf(root: Module, closed: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  const add = (module: Module, depth: number) => {
    for (const resource of module.resources) {
      // The address in the module, with the key.
      const text = resource.module ? resource.address.slice(resource.module.length + 1) : resource.address;
      rows.push({ key: `r ${resource.address}`, depth, text, size: 0, resource });
    }
    for (const next of module.modules.values()) {
      rows.push({ key: `m ${next.path}`, depth, text: next.name, size: next.size, module: next });
      if (!closed.has(next.path)) add(next, depth + 1);
    }
  };
  add(root, 0);
  return rows;
}

const ROW = 34;

/** The next page is read when this many rows are left. */
const AHEAD = 100;

function Tree({
  resources,
  selected,
  onSelect,
  onEnd,
}: {
  resources: StateResource[];
  selected: string | undefined;
  onSelect: (address: string) => void;
  onEnd: (() => void) | undefined;
}) {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const tree = useMemo(() => treeOf(resources), [resources]);
  const rows = useMemo(() => rowsOf(tree, closed), [tree, closed]);
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const found = rows.findIndex((row) => row.resource?.address === selected);
  const [focus, setFocus] = useState(Math.max(0, found));
  const at = Math.min(focus, Math.max(0, rows.length - 1));
  const hasFound = found >= 0;
  useEffect(() => {
    if (!hasFound) return;
    setFocus(found);
    virtual.scrollToIndex(found, { align: "auto" });
    // Not again when more rows come.
  }, [selected, hasFound]);
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= rows.length - AHEAD) onEnd?.();
  }, [last, rows.length, onEnd]);

  const go = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setFocus(next);
    virtual.scrollToIndex(next, { align: "auto" });
  };
  const toggle = ({ path }: Module, close: boolean) => {
    const next = new Set(closed);
    if (close) next.add(path);
    else next.delete(path);
    setClosed(next);
  };
  const press = (event: KeyboardEvent) => {
    const row = rows[at];
    if (!row) return;
    const { module, resource } = row;
    const isOpen = module !== undefined && !closed.has(module.path);
    const act = () => {
      if (resource) onSelect(resource.address);
      else if (module) toggle(module, isOpen);
    };
    const keys: Record<string, () => void> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      PageDown: () => go(at + 10),
      PageUp: () => go(at - 10),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      ArrowRight: () => (module && !isOpen ? toggle(module, false) : go(at + 1)),
      ArrowLeft: () => {
        if (module && isOpen) toggle(module, true);
        else go(rows.slice(0, at).findLastIndex((one) => one.depth < row.depth));
      },
      Enter: act,
      " ": act,
    };
    const found = keys[event.key];
    if (!found) return;
    event.preventDefault();
    found();
  };
  return (
    <div
      ref={box}
      className="tree"
      role="tree"
      aria-label="Resources"
      tabIndex={0}
      aria-activedescendant={rows[at] ? `row-${at}` : undefined}
      onKeyDown={press}
    >
      <div style={{ height: virtual.getTotalSize(), position: "relative" }} role="none">
        {items.map(({ index, start }) => {
          const row = rows[index];
          if (!row) return null;
          const { resource, module } = row;
          const isOpen = module !== undefined && !closed.has(module.path);
          return (
            <div
              key={row.key}
              id={`row-${index}`}
              role="treeitem"
              aria-level={row.depth + 1}
              aria-expanded={module ? isOpen : undefined}
              aria-selected={resource !== undefined && resource.address === selected}
              className={`tree-row${index === at ? " at" : ""}`}
              style={{ transform: `translateY(${start}px)`, paddingInlineStart: 8 + Math.min(row.depth, 12) * 18 }}
              onClick={() => {
                setFocus(index);
                if (resource) onSelect(resource.address);
                else if (module) toggle(module, isOpen);
              }}
            >
              <span className="twist">{module && <Icon name={isOpen ? "down" : "right"} />}</span>
              <span className="ellipsis">{visible(row.text)}</span>
              {resource?.tainted && <Badge tone="warn">tainted</Badge>}
              {resource?.deposed !== undefined && <Badge tone="warn">waits to be destroyed</Badge>}
              <span className="end faint ellipsis type">
                {resource ? visible(resource.provider.split("/").at(-1) ?? "") : number(row.size)}
              </span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** Links that are listed at first. */
const LINKS_MAX = 100;

function Links({ title, addresses, more }: { title: string; addresses: string[]; more: number }) {
  const params = useParams({ from: ROUTE });
  const hidden = Math.max(0, addresses.length - LINKS_MAX) + more;
  return (
    <Card title={title} count={addresses.length + more}>
      {addresses.length === 0 ? (
        <p className="none">None.</p>
      ) : (
        <ul className="plain-list">
          {addresses.slice(0, LINKS_MAX).map((address) => (
            <li key={address} className="list-row">
              <Link
                to={ROUTE}
                params={params}
                search={({ q, version, hops }) => ({ q, version, hops, address })}
                activeOptions={{ exact: true }}
                resetScroll={false}
              >
                {visible(address)}
              </Link>
            </li>
          ))}
          {hidden > 0 && <li className="none">and {number(hidden)} more</li>}
        </ul>
      )}
    </Card>
  );
}

/** The drawing of what is around a resource: what it depends on is at its left. */
function drawingOf({ nodes, edges }: StateNeighbourhood, hrefOf: (address: string) => string): Drawing {
  return draw(
    nodes.map(({ address, module, mode, type, name, key }) => ({
      label: key === undefined ? name : `${name}[${key}]`,
      kind: mode === "data" ? `data.${type}` : type,
      href: hrefOf(address),
      group: `${module ?? ""} ${mode} ${type}`,
      above: module === undefined ? undefined : { name: visible(module) },
    })),
    edges,
  );
}

function Around({ state, address, version }: { state: State; address: string; version: string | undefined }) {
  const params = useParams({ from: ROUTE });
  const search = useSearch({ from: ROUTE });
  const navigate = useNavigate({ from: ROUTE });
  const router = useRouter();
  const hops = search.hops ?? 1;
  const found = useQuery({
    ...queries.stateNeighbours(state.id, address, version, state.version, hops),
    placeholderData: keepPreviousData,
  });
  const drawing = useMemo(() => {
    const hrefOf = (other: string) =>
      router.buildLocation({ to: ROUTE, params, search: { ...search, address: other } }).href;
    return found.data && drawingOf(found.data, hrefOf);
  }, [found.data, router, params, search]);
  return (
    <Card
      title="What is around it"
      count={found.data?.nodes.length}
      actions={
        <Hops
          value={hops}
          onChange={(hops) =>
            void navigate({ search: (before) => ({ ...before, hops }), replace: true, resetScroll: false })
          }
        />
      }
    >
      <Loaded of={found} rows={4}>
        {({ nodes, isCut }) => (
          <>
            {isCut && (
              <Notice tone="warn">There is more around it. Here are {number(nodes.length)} that are near.</Notice>
            )}
            {nodes.length < 2 ? (
              <p className="none">Nothing in this state depends on it, and it depends on nothing there.</p>
            ) : (
              drawing && (
                <Suspense fallback={<Waiting />}>
                  <Graph label="What it depends on, and what depends on it" {...drawing} />
                </Suspense>
              )
            )}
            {drawing?.isFolded && (
              <p className="foot">Those of one type in one module are drawn as one. The tree has each.</p>
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}

/** Attributes come from a request that the audit trail records. */
function Attributes({ state, of, version }: { state: State; of: StateResourceAround; version: string | undefined }) {
  const [found, setFound] = useState<StateResourceValues>();
  const [error, setError] = useState<unknown>();
  const [isReading, setReading] = useState(false);
  const mayRead = useRightsOnState(state.organization ?? "", state)("plan");
  const ask = async (unmask: boolean) => {
    setReading(true);
    setError(undefined);
    try {
      const url = urlOf("/api/tfstates/{guid}/resource/values", { guid: state.id });
      // Of the version that is shown, whatever is written meanwhile.
      const which = version ?? String(of.version ?? of.rejected);
      setFound((await reveal(url, { address: of.address, version: which, unmask })) as StateResourceValues);
    } catch (error) {
      setError(error);
    } finally {
      setReading(false);
    }
  };
  const entries = isObject(found?.attributes) ? Object.entries(found.attributes) : [];
  // An address never has a shown secret.
  const plain = Object.fromEntries(entries.filter(([name]) => !found?.sensitive.includes(name)));
  const page = of.mode === "managed" ? terraformPage(of.type, plain) : undefined;
  // One button, so that it keeps the focus.
  const next = !found
    ? { text: "Show values", unmask: false }
    : found.sensitive.length === 0
      ? undefined
      : found.masked
        ? { text: "Show sensitive ones too", unmask: true }
        : { text: "Mask the sensitive ones", unmask: false };
  return (
    <Card
      title="Attributes"
      count={found && entries.length}
      actions={
        <>
          {page && (
            <a className="button small" href={page.href} target="_blank" rel="noreferrer noopener">
              Open in {page.title}
            </a>
          )}
          {next && mayRead && (
            <Act className="button small" onPress={() => void ask(next.unmask)} isOff={isReading}>
              <Icon name="eye" /> {next.text}
            </Act>
          )}
        </>
      }
    >
      {error !== undefined && <Failure error={error} />}
      {found === undefined ? (
        <p className="none">
          {mayRead
            ? "Not shown. Showing them is recorded in the audit trail."
            : "Not shown. Showing them needs the role plan on this state."}
        </p>
      ) : found.attributes === null ? (
        <p className="none">It has none.</p>
      ) : (
        <>
          {entries.length > 0 ? (
            <Table label="Attributes" head={["Name", "Value"]}>
              {entries.map(([name, value]) => (
                <tr key={name}>
                  <th scope="row">
                    <code>{visible(name)}</code>
                  </th>
                  <td>
                    <div className="value">
                      <Code className={value === SENSITIVE ? "masked" : undefined} value={value} />
                    </div>
                  </td>
                </tr>
              ))}
            </Table>
          ) : (
            <div className="pad">
              <Code value={found.attributes} />
            </div>
          )}
          <p className="foot">
            Masked is what the state marks as sensitive. Other values may be secrets too.
          </p>
        </>
      )}
    </Card>
  );
}

const OPS: Record<string, ["good" | "bad" | "busy", string]> = {
  create: ["good", "Created"],
  change: ["busy", "Changed"],
  delete: ["bad", "Deleted"],
};

/** The paths that a version changed in the resource. The server reads both versions for it, so only when it is asked for. */
function WhatChanged({ guid, address, version }: { guid: string; address: string; version: number }) {
  const diff = useQuery(queries.stateDiff(guid, String(version - 1), String(version), address));
  return (
    <Loaded of={diff} rows={2}>
      {({ changedProperties }) => {
        const [found] = changedProperties;
        if (!found) return <p className="none">What it changed cannot be listed: the resource is too long.</p>;
        return (
          <ul className="diff">
            {found.properties.map(({ path, change }) => (
              <li key={path} className={`diff-${change}`}>
                <code className="diff-path">{visible(path)}</code>
                <span className="faint">{change}</span>
              </li>
            ))}
            {found.more > 0 && <li className="none">and {count(found.more, "property", "properties")} more</li>}
          </ul>
        );
      }}
    </Loaded>
  );
}

/** The columns of a history. */
const COLUMNS = ["Version", "What", "When", "By", "Serial", ""];

function Entry({ state, address, of }: { state: State; address: string; of: StateResourceChange }) {
  const params = useParams({ from: ROUTE });
  const [isOpen, setOpen] = useState(false);
  const { version, serial, time, by, op } = of;
  const [tone, word] = OPS[op] ?? ["busy", op];
  return (
    <>
      <tr>
        <th scope="row">
          {version > 1 ? (
            <Link to={`${STATE}/versions`} params={params} search={{ from: String(version - 1), to: String(version) }}>
              {number(version)}
            </Link>
          ) : (
            number(version)
          )}
        </th>
        <td>
          <Badge tone={tone}>{word}</Badge>
        </td>
        <td>
          <Time at={time} />
        </td>
        <td>{by}</td>
        <td>{serial ?? "–"}</td>
        <td className="actions">
          {op === "change" && (
            <Button
              className="button small"
              aria-expanded={isOpen}
              aria-label={`${isOpen ? "Hide" : "What changed"} in version ${version}`}
              onPress={() => setOpen(!isOpen)}
            >
              {isOpen ? "Hide" : "What changed"}
            </Button>
          )}
          <Link
            className="button small"
            to={ROUTE}
            params={params}
            search={({ q, hops }) => ({ q, hops, address, version: String(op === "delete" ? version - 1 : version) })}
            resetScroll={false}
          >
            {op === "delete" ? "As it was before" : "As it was then"}
          </Link>
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={COLUMNS.length}>
            <WhatChanged guid={state.id} address={address} version={version} />
          </td>
        </tr>
      )}
    </>
  );
}

function Past({ state, address }: { state: State; address: string }) {
  const history = useInfiniteQuery(queries.stateResourceHistory(state.id, address, state.version));
  const pages = history.data?.pages ?? [];
  const entries = pages.flatMap((page) => page.entries);
  const unknown = pages.flatMap((page) => page.unknown);
  return (
    <Card title="History">
      <Loaded of={history}>
        {() => (
          <>
            {entries.length === 0 && !history.hasNextPage ? (
              <p className="none">No version is known to have changed it.</p>
            ) : (
              <Table label="Versions that changed it" head={COLUMNS}>
                {entries.map((entry) => (
                  <Entry key={entry.version} state={state} address={address} of={entry} />
                ))}
              </Table>
            )}
            {unknown.length > 0 && (
              <p className="foot">
                Not known of {unknown.length === 1 ? "version" : "versions"} {unknown.slice(0, 20).join(", ")}
                {unknown.length > 20 && ` and ${number(unknown.length - 20)} more`}: the client encrypted them, or the
                version before is not stored any more.
              </p>
            )}
            {history.hasNextPage && (
              <More onPress={() => void history.fetchNextPage()} isLoading={history.isFetchingNextPage} />
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}

function One({ state, address, version }: { state: State; address: string; version: string | undefined }) {
  const one = useQuery(queries.stateResource(state.id, address, version, state.version));
  const isMissing = one.error instanceof ApiError && one.error.reason === "resource_not_found";
  const found = one.data;
  return (
    <>
      {isMissing ? (
        <Notice tone="warn">
          <p>This version does not have this resource. Its history tells which ones have it.</p>
          <p className="faint">
            <code>{visible(address)}</code>
          </p>
        </Notice>
      ) : (
        <Loaded of={one} rows={5}>
          {(found) => (
            <>
              <Card title={visible(found.key === undefined ? found.name : `${found.name}[${found.key}]`)} actions={<Copy text={found.address} label="Copy the address" />}>
                <div className="pad">
                  <Facts
                    of={[
                      ["Address", <code key="a">{visible(found.address)}</code>],
                      ["Type", <code key="t">{visible(found.type)}</code>],
                      ["Mode", found.mode === "data" ? "read only (data)" : "managed"],
                      ["Provider", <code key="p">{visible(found.provider)}</code>],
                      ...(found.tainted ? ([["Tainted", "the next run replaces it"]] as [string, string][]) : []),
                      ...(found.deposed === undefined
                        ? []
                        : ([["Deposed", "it was replaced, and waits to be destroyed"]] as [string, string][])),
                    ]}
                  />
                </div>
              </Card>
              <Attributes key={`${found.address} ${found.version ?? found.rejected}`} state={state} of={found} version={version} />
              <Around state={state} address={found.address} version={version} />
              <Links title="Depends on" addresses={found.dependencies} more={found.dependenciesMore} />
              <Links title="Needed by" addresses={found.dependents} more={found.dependentsMore} />
            </>
          )}
        </Loaded>
      )}
      {(found !== undefined || isMissing) && <Past state={state} address={address} />}
    </>
  );
}

/** A request for each letter would be many: it waits for a pause. */
const PAUSE = 300;

export function StateResources() {
  const params = useParams({ from: ROUTE });
  const search = useSearch({ from: ROUTE });
  const navigate = useNavigate({ from: ROUTE });
  const state = useQuery(queries.stateByName(params.org, params.project, params.state)).data;
  useTitle("Resources", `${params.project}/${params.state}`);
  const [typed, setTyped] = useTyped(
    search.q ?? "",
    (q) => void navigate({ search: (before) => ({ ...before, q: q || undefined }), replace: true, resetScroll: false }),
    PAUSE,
  );
  const listed = useInfiniteQuery({
    ...queries.stateResources(state?.id ?? "", search.q ?? "", search.version, state?.version ?? 0),
    enabled: state !== undefined,
    placeholderData: (before) => before,
  });
  const pages = listed.data?.pages;
  const resources = useMemo(() => (pages ?? []).flatMap((page) => page.resources), [pages]);
  const { hasNextPage, isFetching, fetchNextPage } = listed;
  const onEnd = useMemo(
    () => (hasNextPage && !isFetching ? () => void fetchNextPage() : undefined),
    [hasNextPage, isFetching, fetchNextPage],
  );
  if (!state) return null;
  const isUnknown = listed.error instanceof ApiError && listed.error.reason === "resources_unknown";
  const newest = pages?.at(-1);
  return (
    <>
      {search.version !== undefined && (
        <Notice>
          This is {search.version.length === 32 ? "a refused write" : `version ${search.version}`}.{" "}
          <Link to={ROUTE} params={params}>
            To the current one
          </Link>
        </Notice>
      )}
      {isUnknown ? (
        <Empty icon="lock" title="The server cannot list the resources of this version">
          Its client encrypted it, or wrote it in a format that the server does not know.
        </Empty>
      ) : (
        <Loaded of={listed} rows={8}>
          {() =>
            newest?.total === 0 && search.address === undefined ? (
              <Empty icon="state" title={newest.version === 0 ? "No client has written this state yet" : "This version has no resources"} />
            ) : (
              <div className={`resources${search.address === undefined ? "" : " with-one"}`}>
                <div className="card tree-card">
                  <div className="filters">
                    <Search label="Filter by address or provider" value={typed} onChange={setTyped} />
                    <span className="faint" role="status">
                      {search.q ? `${number(newest?.matched ?? 0)} of ${number(newest?.total ?? 0)}` : `${number(newest?.total ?? 0)} in all`}
                    </span>
                  </div>
                  {resources.length === 0 ? (
                    <p className="none">Nothing has these words.</p>
                  ) : (
                    <Tree
                      resources={resources}
                      selected={search.address}
                      onSelect={(address) =>
                        void navigate({ search: (before) => ({ ...before, address }), resetScroll: false })
                      }
                      onEnd={onEnd}
                    />
                  )}
                </div>
                {search.address !== undefined && (
                  <div className="one">
                    <One key={search.address} state={state} address={search.address} version={search.version} />
                  </div>
                )}
              </div>
            )
          }
        </Loaded>
      )}
    </>
  );
}
