// What is around a resource, of a stack or of a state, as a graph.

import { number } from "../format";
import type { GraphEdge, GraphNode } from "./graph";
import { Select, type Tone } from "./parts";

/** A resource around one. */
export interface Near {
  label: string;
  kind: string;
  tone?: Tone;
  /** Its page. */
  href: string;
  /** Those of one group are drawn as one if there are many: of one type below one parent. */
  group: string;
  /** What the group is below. */
  above?: { name: string; href?: string };
}

/** A reference between resources, which are named by their places. */
export interface Needs {
  /** The one that needs the other. */
  from: number;
  to: number;
  /** Whether it says little: a stronger one between the same two is drawn instead. */
  isWeak?: boolean;
}

/** What a graph shows. */
export interface Drawing {
  nodes: GraphNode[];
  edges: GraphEdge[];
  current: string;
  /** Whether some are drawn as one. */
  isFolded: boolean;
}

/** Nodes from which on those of one group are drawn as one. */
const FOLDED_FROM = 60;

/** How many of them there have to be. */
const FOLD_MIN = 4;

/** The drawing of what is around the first of these: what it needs is at its left. */
export function draw(nodes: Near[], edges: Needs[]): Drawing {
  const members = new Map<string, number>();
  // The one that it is about stays alone.
  const foldable = nodes.length < FOLDED_FROM ? [] : nodes.slice(1);
  for (const { group } of foldable) members.set(group, (members.get(group) ?? 0) + 1);
  const ids: string[] = [];
  const drawn = new Map<string, GraphNode>();
  for (const [index, { label, kind, tone, href, group, above }] of nodes.entries()) {
    const size = index === 0 ? 0 : (members.get(group) ?? 0);
    if (size >= FOLD_MIN) {
      const id = `group ${group}`;
      ids.push(id);
      const below = above ? `below ${above.name}` : "";
      drawn.set(id, { id, label: `${number(size)} × ${kind}`, kind: below, tone: "plain", href: above?.href });
    } else {
      // The same in the next drawing, so that it keeps the focus. Two that wait to be deleted may have one page.
      const id = `page ${href}`;
      ids.push(id);
      if (!drawn.has(id)) drawn.set(id, { id, label, kind, tone: index === 0 ? "busy" : tone, href });
    }
  }
  const arrows = new Map<string, GraphEdge>();
  for (const edge of edges) {
    const [from, to] = [ids[edge.to], ids[edge.from]];
    if (from === undefined || to === undefined || from === to) continue;
    const tone = edge.isWeak ? "plain" : "busy";
    const key = `${from} to ${to}`;
    if (tone === "busy" || !arrows.has(key)) arrows.set(key, { from, to, tone });
  }
  const isFolded = [...members.values()].some((size) => size >= FOLD_MIN);
  return { nodes: [...drawn.values()], edges: [...arrows.values()], current: ids[0] ?? "", isFolded };
}

/** Chooses how many steps away what is shown may be. One is what an address without a number means. */
export function Hops({ value, onChange }: { value: number; onChange: (hops: number | undefined) => void }) {
  return (
    <Select
      label="Steps away"
      value={String(value)}
      onChange={(chosen) => onChange(chosen === "1" ? undefined : Number(chosen))}
      options={["1", "2", "3"].map((steps): [string, string] => [steps, steps])}
    />
  );
}
