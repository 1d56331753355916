// Lays a graph out in columns, outside of the page.

import { Graph, layout } from "@dagrejs/dagre";

/** What is to be laid out. All nodes have the same size. */
export interface ToLay {
  ids: string[];
  edges: [string, string][];
  width: number;
  height: number;
}

/** The middles of the nodes, and the points of the edges, in the order in which they came. */
export interface Laid {
  width: number;
  height: number;
  nodes: [number, number][];
  edges: [number, number][][];
}

const MARGIN = 12;

function laid({ ids, edges, width, height }: ToLay): Laid {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 56, marginx: MARGIN, marginy: MARGIN, ranker: "tight-tree" });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of ids) graph.setNode(id, { width, height });
  const isKnown = new Set(ids);
  for (const [index, [from, to]] of edges.entries()) {
    if (from !== to && isKnown.has(from) && isKnown.has(to)) graph.setEdge(from, to, {}, String(index));
  }
  layout(graph);
  const { width: wide = 0, height: high = 0 } = graph.graph();
  return {
    width: wide,
    height: high,
    nodes: ids.map((id) => {
      const { x, y } = graph.node(id) as { x: number; y: number };
      return [x, y];
    }),
    edges: edges.map(([from, to], index) => {
      const edge = graph.edge(from, to, String(index)) as { points?: { x: number; y: number }[] } | undefined;
      return (edge?.points ?? []).map(({ x, y }) => [x, y]);
    }),
  };
}

self.onmessage = ({ data }: MessageEvent<ToLay>) => self.postMessage(laid(data));
