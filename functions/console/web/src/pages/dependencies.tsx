// Which stacks and states read the outputs of which others, what may be stale, and an order to apply all.

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Suspense, lazy, useMemo, useState } from "react";
import * as queries from "../api/queries";
import type { DependencyMap, MapNode } from "../api/queries";
import { count, number, visible } from "../format";
import type { GraphEdge, GraphNode } from "../ui/graph";
import { Badge, Card, Empty, Loaded, More, Notice, Search, Select, Table, type Tone, Time, Waiting, useTitle, useTyped } from "../ui/parts";

const Graph = lazy(() => import("../ui/graph"));

const ROUTE = "/$org/-/dependencies";

/** Stacks and states that are drawn, at most. The table has all of them. */
const DRAWN_MAX = 300;

/** Rows of the table at first, and with each further step. */
const ROWS = 100;

const STATUSES: Record<string, [Tone, string]> = {
  clean: ["good", "Up to date"],
  stale: ["warn", "Stale"],
  "potentially-stale": ["busy", "Maybe stale"],
};

const statusOf = ({ status }: MapNode): [Tone, string] => STATUSES[status ?? ""] ?? ["plain", "Not computed"];

const nameOf = ({ project, name }: MapNode) => visible(`${project}/${name}`);

const hrefOf = (org: string, { kind, project, name }: MapNode) =>
  `/${(kind === "stack" ? [org, project, name] : [org, "-", "states", project, name]).map(encodeURIComponent).join("/")}`;

function To({ org, node }: { org: string; node: MapNode }) {
  const { kind, project, name } = node;
  return kind === "stack" ? (
    <Link to="/$org/$project/$stack" params={{ org, project, stack: name }}>
      {nameOf(node)}
    </Link>
  ) : (
    <Link to="/$org/-/states/$project/$state" params={{ org, project, state: name }}>
      {nameOf(node)}
    </Link>
  );
}

/** The places of the nodes that are shown: what the filter finds, with what it reads and what reads it. */
function shownOf({ nodes, edges }: DependencyMap, words: string[], isStaleOnly: boolean): Set<number> {
  const isFound = (node: MapNode) => {
    const text = `${node.project}/${node.name}`.toLowerCase();
    const isStale = node.status === "stale" || node.status === "potentially-stale";
    return words.every((word) => text.includes(word)) && (!isStaleOnly || isStale);
  };
  const found = new Set(nodes.flatMap((node, place) => (isFound(node) ? [place] : [])));
  const shown = new Set(found);
  if (found.size === nodes.length) return shown;
  for (const { from, to } of edges) {
    if (found.has(from) && !isStaleOnly) shown.add(to);
    if (found.has(to)) shown.add(from);
  }
  return shown;
}

function Drawn({ org, map, shown }: { org: string; map: DependencyMap; shown: Set<number> }) {
  const { nodes, edges } = useMemo(() => {
    const drawn = new Set([...shown].sort((a, b) => a - b).slice(0, DRAWN_MAX));
    // Ids that the next map has too, so that a node keeps the focus.
    const hrefs = map.nodes.map((node, place) => (drawn.has(place) ? hrefOf(org, node) : undefined));
    const nodes = map.nodes.flatMap((node, place): GraphNode[] => {
      const href = hrefs[place];
      if (href === undefined) return [];
      const [tone, word] = statusOf(node);
      const kind = `${node.kind === "stack" ? "Stack" : "State"}, ${word.toLowerCase()}`;
      return [{ id: href, label: nameOf(node), kind, tone, href }];
    });
    const edges = map.edges.flatMap((edge): GraphEdge[] => {
      const [from, to] = [hrefs[edge.from], hrefs[edge.to]];
      if (from === undefined || to === undefined) return [];
      return [{ from, to, ...(edge.stale && { tone: "warn" as const }) }];
    });
    return { nodes, edges };
  }, [org, map, shown]);
  return (
    <Card title="Map" count={nodes.length}>
      <div className="pad">
        {shown.size > nodes.length && (
          <p className="faint">
            The first {number(nodes.length)} of {number(shown.size)} are drawn. The filter finds others.
          </p>
        )}
        <Suspense fallback={<Waiting />}>
          <Graph label="Who reads the outputs of whom" nodes={nodes} edges={edges} />
        </Suspense>
        <p className="faint">
          An arrow leads from the outputs to who reads them. The table below has the same, in an order to apply all.
        </p>
      </div>
    </Card>
  );
}

/** Links in one cell, at most. */
const READS_MAX = 8;

function Listed({ org, map, shown }: { org: string; map: DependencyMap; shown: Set<number> }) {
  const [rows, setRows] = useState(ROWS);
  const reads = useMemo(() => {
    const found = new Map<number, { place: number; isStale: boolean; outputs: string[] }[]>();
    for (const { from, to, stale, outputs = [] } of map.edges) {
      const all = found.get(to) ?? [];
      all.push({ place: from, isStale: stale === true, outputs });
      found.set(to, all);
    }
    return found;
  }, [map]);
  const places = [...shown].sort((a, b) => a - b);
  return (
    <Card title="In order" count={places.length}>
      <Table label="Stacks and states in an order to apply them" head={["Step", "Name", "Kind", "Status", "Last change", "Reads"]}>
        {places.slice(0, rows).map((place) => {
          const node = map.nodes[place];
          if (!node) return null;
          const [tone, word] = statusOf(node);
          const all = reads.get(place) ?? [];
          return (
            <tr key={place}>
              <td>{node.layer === null ? "in a circle" : number(node.layer + 1)}</td>
              <th scope="row">
                <To org={org} node={node} />
              </th>
              <td>{node.kind === "stack" ? "Stack" : "State"}</td>
              <td>
                <Badge tone={tone}>{word}</Badge>
              </td>
              <td>
                <Time at={node.lastChange} />
              </td>
              <td>
                {all.length === 0 && <span className="faint">–</span>}
                {all.slice(0, READS_MAX).map(({ place, isStale, outputs }) => {
                  const read = map.nodes[place];
                  return (
                    read && (
                      <div key={place}>
                        <To org={org} node={read} />
                        {outputs.length > 0 && <span className="faint"> {visible(outputs.join(", "))}</span>}{" "}
                        {isStale && <Badge tone="warn">changed since</Badge>}
                      </div>
                    )
                  );
                })}
                {all.length > READS_MAX && <span className="faint">and {number(all.length - READS_MAX)} more</span>}
              </td>
            </tr>
          );
        })}
      </Table>
      {places.length > rows && <More onPress={() => setRows(rows + ROWS)} isLoading={false} />}
    </Card>
  );
}

export function Dependencies() {
  const { org } = useParams({ from: ROUTE });
  const { q, show } = useSearch({ from: ROUTE });
  const navigate = useNavigate({ from: ROUTE });
  const map = useQuery(queries.dependencyMap(org));
  useTitle("Dependencies", org);
  return (
    <div className="page">
      <h1>Dependencies</h1>
      <Loaded of={map} rows={6}>
        {(map) =>
          map.nodes.length === 0 ? (
            <Empty icon="stack" title="Nothing here reads the outputs of another">
              Stack references of Pulumi programs appear with the next update of the stack that reads. Edges between
              Terraform states are added with <code>statewright dep add</code>.
            </Empty>
          ) : (
            <Shown
              org={org}
              map={map}
              q={q ?? ""}
              isStaleOnly={show === "stale"}
              onChange={(q, show) =>
                void navigate({ search: { q: q || undefined, show: show ? "stale" : undefined }, replace: true })
              }
            />
          )
        }
      </Loaded>
    </div>
  );
}

function Shown({
  org,
  map,
  q,
  isStaleOnly,
  onChange,
}: {
  org: string;
  map: DependencyMap;
  q: string;
  isStaleOnly: boolean;
  onChange: (q: string, isStaleOnly: boolean) => void;
}) {
  const [typed, setTyped] = useTyped(q, (q) => onChange(q, isStaleOnly));
  const shown = useMemo(
    () => shownOf(map, typed.toLowerCase().split(/\s+/).filter(Boolean), isStaleOnly),
    [map, typed, isStaleOnly],
  );
  return (
    <>
      {map.cut && (
        <Notice tone="warn">
          This organization has more stacks and states than one map shows. What is missing here may exist.
        </Notice>
      )}
      <div className="filters">
        <Search label="Filter by name" value={typed} onChange={setTyped} />
        <Select
          label="Show"
          value={isStaleOnly ? "stale" : "all"}
          onChange={(show) => onChange(typed, show === "stale")}
          options={[
            ["all", "All"],
            ["stale", "Stale or maybe stale"],
          ]}
        />
        {map.apart > 0 && (
          <span className="faint">
            {count(map.apart, "other stack or state", "other stacks and states")} {map.apart === 1 ? "is" : "are"} not connected
          </span>
        )}
      </div>
      {shown.size === 0 ? (
        <Empty title={isStaleOnly && typed === "" ? "Nothing is stale" : "Nothing here is found by this filter"} />
      ) : (
        <>
          <Drawn org={org} map={map} shown={shown} />
          <Listed key={`${typed} ${isStaleOnly}`} org={org} map={map} shown={shown} />
        </>
      )}
    </>
  );
}
