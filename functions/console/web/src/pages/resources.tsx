// The resources of a stack, as a tree; and one of them.

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import * as queries from "../api/queries";
import type { Exported, Resource } from "../api/queries";
import { nameIn, number, shortType, visible } from "../format";
import { Icon } from "../ui/icons";
import { Badge, Card, Copy, Empty, Facts, Loaded, Notice, Search, Table, Time, useTitle } from "../ui/parts";
import { isObject } from "../values";
import { Value, useStackName } from "./stack";

interface Node {
  key: string;
  resource: Resource;
  children: Node[];
  depth: number;
}

const ORDER = new Intl.Collator("en", { numeric: true });

/** The tree by parent, in order of name. A resource whose parent is not there is a root. */
function treeOf(resources: Resource[]): Node[] {
  const nodes = resources.map((resource, index): Node => ({ key: `${index}`, resource, children: [], depth: 0 }));
  // A URN occurs again if the resource waits to be deleted.
  const byUrn = new Map<string, Node>();
  for (const node of nodes) if (!node.resource.delete || !byUrn.has(node.resource.urn)) byUrn.set(node.resource.urn, node);
  const roots: Node[] = [];
  for (const node of nodes) {
    const parent = node.resource.parent ? byUrn.get(node.resource.parent) : undefined;
    if (parent && parent !== node) parent.children.push(node);
    else roots.push(node);
  }
  const seen = new Set<Node>();
  const sink = (node: Node, depth: number) => {
    if (seen.has(node)) return;
    seen.add(node);
    node.depth = depth;
    node.children.sort((a, b) => ORDER.compare(nameIn(a.resource.urn), nameIn(b.resource.urn)));
    for (const child of node.children) sink(child, depth + 1);
  };
  for (const root of roots) sink(root, 0);
  return roots;
}

const matches = ({ resource }: Node, words: string[]) => {
  const text = `${resource.type} ${nameIn(resource.urn)} ${resource.id ?? ""}`.toLowerCase();
  return words.every((word) => text.includes(word));
};

/** The rows to draw: the open part of the tree, or what matches with what is above it. */
function rowsOf(roots: Node[], closed: ReadonlySet<string>, words: string[]): Node[] {
  const rows: Node[] = [];
  const add = (node: Node): boolean => {
    const at = rows.length;
    rows.push(node);
    let isFound = words.length === 0 || matches(node, words);
    if (words.length > 0 || !closed.has(node.key)) {
      for (const child of node.children) isFound = add(child) || isFound;
    }
    if (!isFound) rows.length = at;
    return isFound;
  };
  for (const root of roots) add(root);
  return rows;
}

const ROW = 34;

function Tree({
  roots,
  words,
  selected,
  onSelect,
}: {
  roots: Node[];
  words: string[];
  selected: string | undefined;
  onSelect: (urn: string) => void;
}) {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo(() => rowsOf(roots, closed, words), [roots, closed, words]);
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const found = rows.findIndex((node) => node.resource.urn === selected);
  const [focus, setFocus] = useState(Math.max(0, found));
  const at = Math.min(focus, Math.max(0, rows.length - 1));
  useEffect(() => {
    if (found < 0) return;
    setFocus(found);
    virtual.scrollToIndex(found, { align: "auto" });
  }, [found, virtual]);

  const go = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setFocus(next);
    virtual.scrollToIndex(next, { align: "auto" });
  };
  const toggle = (node: Node, close: boolean) => {
    const next = new Set(closed);
    if (close) next.add(node.key);
    else next.delete(node.key);
    setClosed(next);
  };
  const press = (event: KeyboardEvent) => {
    const node = rows[at];
    if (!node) return;
    const isOpen = node.children.length > 0 && !closed.has(node.key);
    const keys: Record<string, () => void> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      PageDown: () => go(at + 10),
      PageUp: () => go(at - 10),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      ArrowRight: () => (node.children.length > 0 && !isOpen ? toggle(node, false) : go(at + 1)),
      ArrowLeft: () => {
        if (isOpen) toggle(node, true);
        else go(rows.slice(0, at).findLastIndex((one) => one.depth < node.depth));
      },
      Enter: () => onSelect(node.resource.urn),
      " ": () => onSelect(node.resource.urn),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  return (
    <div
      ref={box}
      className="tree"
      role="tree"
      aria-label="Resources"
      tabIndex={0}
      aria-activedescendant={rows[at] ? `row-${rows[at].key}` : undefined}
      onKeyDown={press}
    >
      <div style={{ height: virtual.getTotalSize(), position: "relative" }} role="none">
        {virtual.getVirtualItems().map(({ index, start }) => {
          const node = rows[index];
          if (!node) return null;
          const { resource } = node;
          const isParent = node.children.length > 0;
          const isOpen = words.length > 0 || !closed.has(node.key);
          return (
            <div
              key={node.key}
              id={`row-${node.key}`}
              role="treeitem"
              aria-level={node.depth + 1}
              aria-expanded={isParent ? isOpen : undefined}
              aria-selected={resource.urn === selected}
              className={`tree-row${index === at ? " at" : ""}`}
              style={{ transform: `translateY(${start}px)`, paddingInlineStart: 8 + Math.min(node.depth, 12) * 18 }}
              onClick={() => {
                setFocus(index);
                onSelect(resource.urn);
              }}
            >
              <span
                className="twist"
                onClick={(event) => {
                  if (!isParent) return;
                  event.stopPropagation();
                  toggle(node, isOpen);
                }}
              >
                {isParent && <Icon name={isOpen ? "down" : "right"} />}
              </span>
              <span className="ellipsis">{nameIn(resource.urn)}</span>
              {resource.protect && <Icon name="lock" />}
              {resource.delete && <Badge tone="warn">waits to be deleted</Badge>}
              <span className="end faint ellipsis type">{shortType(resource.type)}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Properties({ title, of }: { title: string; of: Record<string, unknown> | undefined }) {
  const entries = Object.entries(of ?? {}).filter(([name]) => !name.startsWith("__"));
  return (
    <Card title={title} count={entries.length}>
      {entries.length === 0 ? (
        <p className="none">None.</p>
      ) : (
        <Table label={title} head={["Name", "Value"]}>
          {entries.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">
                <code>{visible(name)}</code>
              </th>
              <td>
                <Value value={value} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  );
}

/** Links that are listed at first. */
const LINKS_MAX = 100;

function Links({ title, urns }: { title: string; urns: [string, string[]][] }) {
  const name = useStackName();
  return (
    <Card title={title} count={urns.length}>
      {urns.length === 0 ? (
        <p className="none">None.</p>
      ) : (
        <ul className="plain-list">
          {urns.slice(0, LINKS_MAX).map(([urn, properties]) => (
            <li key={urn} className="list-row">
              <Link
                to="/$org/$project/$stack/resources"
                params={name}
                search={({ q, version }) => ({ q, version, urn })}
                activeOptions={{ exact: true }}
                resetScroll={false}
              >
                {nameIn(urn)}
              </Link>
              <span className="faint ellipsis">{shortType(urn.split("::")[2]?.split("$").at(-1) ?? "")}</span>
              {properties.length > 0 && <span className="end faint ellipsis">{properties.join(", ")}</span>}
            </li>
          ))}
          {urns.length > LINKS_MAX && <li className="none">and {number(urns.length - LINKS_MAX)} more</li>}
        </ul>
      )}
    </Card>
  );
}

function One({ resource, all }: { resource: Resource; all: Resource[] }) {
  const name = useStackName();
  const { urn } = resource;
  const needs = useMemo(() => {
    const found = new Map<string, string[]>((resource.dependencies ?? []).map((urn) => [urn, []]));
    for (const [property, urns] of Object.entries(resource.propertyDependencies ?? {})) {
      for (const urn of urns ?? []) found.set(urn, [...(found.get(urn) ?? []), property]);
    }
    return [...found];
  }, [resource]);
  const neededBy = useMemo(
    () =>
      all
        .filter((one) => one.dependencies?.includes(urn))
        .map((one): [string, string[]] => [one.urn, []]),
    [all, urn],
  );
  const provider = resource.provider?.split("::").slice(0, -1).join("::");
  const link = (to: string) => (
    <Link
      to="/$org/$project/$stack/resources"
      params={name}
      search={({ q, version }) => ({ q, version, urn: to })}
      activeOptions={{ exact: true }}
    >
      {nameIn(to)}
    </Link>
  );
  return (
    <>
      <Card
        title={nameIn(urn)}
        actions={
          <Link
            className="button small"
            to="/$org/$project/$stack/resources"
            params={name}
            search={({ q, version }) => ({ q, version })}
            activeOptions={{ exact: true }}
            resetScroll={false}
          >
            <Icon name="cross" /> Close
          </Link>
        }
      >
        <div className="pad">
          <p className="row">
            <code>{resource.type}</code>
            {resource.protect && <Badge tone="warn" icon="lock">Protected</Badge>}
            {resource.external && <Badge tone="plain">Read, not managed</Badge>}
            {resource.custom === false && <Badge tone="plain">Component</Badge>}
            {resource.delete && <Badge tone="warn">Waits to be deleted</Badge>}
          </p>
          <Facts
            of={[
              ...(resource.id
                ? ([
                    [
                      "ID",
                      <span key="id" className="row tight">
                        <code>{resource.id}</code>
                        <Copy text={resource.id} label="Copy the ID" />
                      </span>,
                    ],
                  ] as [string, React.ReactNode][])
                : []),
              [
                "URN",
                <span key="urn" className="row tight">
                  <code>{urn}</code>
                  <Copy text={urn} label="Copy the URN" />
                </span>,
              ],
              ...(resource.parent ? ([["Parent", link(resource.parent)]] as [string, React.ReactNode][]) : []),
              ...(provider ? ([["Provider", link(provider)]] as [string, React.ReactNode][]) : []),
              ...(resource.created ? ([["Created", <Time key="c" at={resource.created} />]] as [string, React.ReactNode][]) : []),
              ...(resource.modified ? ([["Changed", <Time key="m" at={resource.modified} />]] as [string, React.ReactNode][]) : []),
            ]}
          />
        </div>
      </Card>
      <Properties title="Inputs" of={resource.inputs} />
      <Properties title="Outputs" of={resource.outputs} />
      <Links title="Depends on" urns={needs} />
      <Links title="Needed by" urns={neededBy} />
    </>
  );
}

export function Resources() {
  const name = useStackName();
  const stack = useQuery(queries.stack(name)).data;
  const { version } = useSearch({ from: "/$org/$project/$stack/resources" });
  const wanted = version === undefined ? undefined : Number(version);
  const exported = useQuery({
    ...queries.exported(name, wanted ?? stack?.version),
    enabled: stack !== undefined && (stack.version > 0 || wanted !== undefined),
  });
  useTitle("Resources", `${name.project}/${name.stack}`);
  if (stack?.version === 0 && wanted === undefined) return <Empty icon="stack" title="This stack has no resources yet" />;
  return (
    <>
      {wanted !== undefined && (
        <Notice>
          This is version {wanted}.{" "}
          <Link to="/$org/$project/$stack/resources" params={name}>
            To the current one
          </Link>
        </Notice>
      )}
      {stack?.currentOperation && (
        <Notice>An update is running. These are the resources of version {stack.version}, before it.</Notice>
      )}
      <Loaded of={exported} rows={8}>
        {(found) => <Shown exported={found} />}
      </Loaded>
    </>
  );
}

function Shown({ exported }: { exported: Exported }) {
  const search = useSearch({ from: "/$org/$project/$stack/resources" });
  const navigate = useNavigate({ from: "/$org/$project/$stack/resources" });
  const resources = useMemo(
    () => (exported.deployment?.resources ?? []).filter((one) => isObject(one) && typeof one.urn === "string"),
    [exported],
  );
  const roots = useMemo(() => treeOf(resources), [resources]);
  const [typed, setTyped] = useState(search.q ?? "");
  useEffect(() => setTyped(search.q ?? ""), [search.q]);
  const words = useMemo(() => typed.toLowerCase().split(/\s+/).filter(Boolean), [typed]);
  const selected = resources.find((one) => one.urn === search.urn);
  const pending = exported.deployment?.pending_operations ?? [];
  if (resources.length === 0) return <Empty icon="stack" title="This version has no resources" />;
  return (
    <>
      {pending.length > 0 && (
        <Notice tone="warn">
          An update ended in the middle of {number(pending.length)} operations. <code>pulumi refresh</code> looks what
          became of them: {pending.slice(0, 5).map((one) => nameIn(one.resource.urn)).join(", ")}
        </Notice>
      )}
      <div className={`resources${search.urn === undefined ? "" : " with-one"}`}>
        <div className="card tree-card">
          <div className="filters">
            <Search
              label="Filter by name, type or ID"
              value={typed}
              onChange={(q) => {
                setTyped(q);
                void navigate({ search: (before) => ({ ...before, q: q || undefined }), replace: true, resetScroll: false });
              }}
            />
            <span className="faint">{number(resources.length)} in all</span>
          </div>
          <Tree
            roots={roots}
            words={words}
            selected={search.urn}
            onSelect={(urn) => void navigate({ search: (before) => ({ ...before, urn }), resetScroll: false })}
          />
        </div>
        {search.urn !== undefined && (
          <div className="one">
            {selected ? (
              <One key={selected.urn} resource={selected} all={resources} />
            ) : (
              <Notice tone="warn">
                <p>This version does not have the resource {nameIn(search.urn)}.</p>
                <p className="faint">
                  <code>{search.urn}</code>
                </p>
              </Notice>
            )}
          </div>
        )}
      </div>
    </>
  );
}
