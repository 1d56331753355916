// A graph that is read from left to right. A worker makes its layout, so the page stays quick meanwhile.

import { useRouter } from "@tanstack/react-router";
import { type KeyboardEvent, type MouseEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import { visible } from "../format";
import type { Laid, ToLay } from "./layout.worker";
import { Act, type Tone, Notice, Waiting } from "./parts";

export interface GraphNode {
  id: string;
  label: string;
  /** A few words below the label. */
  kind: string;
  tone?: Tone;
  /** An address of this console. */
  href?: string;
}

/** An arrow. `from` is left of `to`, unless the arrows make a circle. */
export interface GraphEdge {
  from: string;
  to: string;
  tone?: Tone;
}

/** The size of a node, and the letters that fit into it. */
const [WIDTH, HEIGHT] = [210, 46];
const LABEL_MAX = 22;
const KIND_MAX = 30;

/** Milliseconds after which a layout is given up. */
const PATIENCE = 20_000;

const SCALES = [0.4, 0.55, 0.75, 1, 1.3];
const AS_IT_IS = 3;

const ARROWS: Record<string, [number, number]> = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowDown: [0, 1],
  ArrowUp: [0, -1],
};

/** Names differ at their ends. */
const short = (text: string, max: number) =>
  text.length <= max ? text : `${text.slice(0, max - 11)}…${text.slice(-10)}`;

/** A layout, and what it was made of: they fit each other only together. */
interface Drawn {
  nodes: GraphNode[];
  edges: GraphEdge[];
  current: string | undefined;
  laid: Laid;
}

/** The newest drawing that is ready. It stays while the next one is made, so what is around it does not move. */
function useDrawn(nodes: GraphNode[], edges: GraphEdge[], current: string | undefined) {
  const [drawn, setDrawn] = useState<Drawn>();
  const [isFailed, setFailed] = useState(false);
  useEffect(() => {
    setFailed(false);
    const worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    const giveUp = () => {
      worker.terminate();
      setFailed(true);
    };
    const timer = setTimeout(giveUp, PATIENCE);
    worker.onerror = giveUp;
    worker.onmessage = ({ data }: MessageEvent<Laid>) => {
      clearTimeout(timer);
      worker.terminate();
      setDrawn({ nodes, edges, current, laid: data });
    };
    const toLay: ToLay = {
      ids: nodes.map(({ id }) => id),
      edges: edges.map(({ from, to }) => [from, to]),
      width: WIDTH,
      height: HEIGHT,
    };
    worker.postMessage(toLay);
    return () => {
      clearTimeout(timer);
      worker.terminate();
    };
  }, [nodes, edges, current]);
  return { drawn, isFailed };
}

type Point = [number, number];

/** A line through the points, without corners. */
function curve(points: Point[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  const parts = [`M${first.join(" ")}`];
  for (const [index, [x, y]] of rest.entries()) {
    const next = rest[index + 1];
    parts.push(next ? `Q${x} ${y} ${(x + next[0]) / 2} ${(y + next[1]) / 2}` : `L${x} ${y}`);
  }
  return parts.join("");
}

function Arrow({ points, tone }: { points: Point[]; tone: Tone | undefined }) {
  const [x, y] = points.at(-1) ?? [0, 0];
  const [fromX, fromY] = points.at(-2) ?? [0, 0];
  const angle = (Math.atan2(y - fromY, x - fromX) * 180) / Math.PI;
  return (
    <g className={`edge ${tone ?? "plain"}`}>
      <path className="edge-line" d={curve(points)} />
      <path className="edge-end" d="M0 0L-8 -4V4z" transform={`translate(${x} ${y}) rotate(${angle})`} />
    </g>
  );
}

/**
 * Draws at most some 300 nodes. The Tab key comes to one of them, and the arrow keys go to others. `current` is the
 * node that the graph is about.
 */
export default function Graph({
  label,
  ...wanted
}: {
  label: string;
  nodes: GraphNode[];
  edges: GraphEdge[];
  current?: string;
}) {
  const { drawn, isFailed } = useDrawn(wanted.nodes, wanted.edges, wanted.current);
  return (
    <>
      {isFailed && (
        <Notice tone="warn">
          This browser could not draw the graph.{drawn && " Here is the one that was there before."}
        </Notice>
      )}
      {drawn ? (
        <Shown label={label} {...drawn} />
      ) : (
        // About as high as a small graph.
        !isFailed && <Waiting />
      )}
    </>
  );
}

function Shown({ label, nodes, edges, current, laid }: { label: string } & Drawn) {
  const router = useRouter();
  const [scale, setScale] = useState(AS_IT_IS);
  const [focused, setFocused] = useState<string>();
  const box = useRef<HTMLDivElement>(null);
  const known = new Set(nodes.map(({ id }) => id));
  const at = [focused, current].find((id) => id !== undefined && known.has(id)) ?? nodes[0]?.id;
  const factor = SCALES[scale] ?? 1;

  // What it is about may be far from its corner. While it does not move, the person decides what is in view.
  const [x, y] = laid.nodes[nodes.findIndex(({ id }) => id === current)] ?? [];
  useEffect(() => {
    if (x === undefined || y === undefined || !box.current) return;
    box.current.scrollLeft = x * factor - box.current.clientWidth / 2;
    box.current.scrollTop = y * factor - box.current.clientHeight / 2;
  }, [current, x, y, factor]);

  const focus = (id: string) =>
    box.current?.querySelector<SVGElement>(`[data-node="${CSS.escape(id)}"]`)?.focus();
  // A node that leaves with the drawing before gives its focus to the one that Tab comes to.
  const hasFocus = useRef(false);
  useLayoutEffect(() => {
    const isLost = hasFocus.current && box.current?.contains(document.activeElement) === false;
    if (isLost && at !== undefined) focus(at);
  }, [nodes, at]);

  const press = (event: KeyboardEvent) => {
    const way = ARROWS[event.key];
    const here = laid.nodes[nodes.findIndex(({ id }) => id === at)];
    if (!way || !here) return;
    event.preventDefault();
    const [dx, dy] = way;
    let nearest: { id: string; far: number } | undefined;
    for (const [index, { id }] of nodes.entries()) {
      const [x, y] = laid.nodes[index] ?? here;
      const along = (x - here[0]) * dx + (y - here[1]) * dy;
      const aside = Math.abs((x - here[0]) * dy) + Math.abs((y - here[1]) * dx);
      // A node of another column is neither above nor below.
      const isThere = along > 1 && (dx !== 0 || aside < WIDTH);
      const far = along + 2 * aside;
      if (id !== at && isThere && far < (nearest?.far ?? Number.POSITIVE_INFINITY)) nearest = { id, far };
    }
    if (!nearest) return;
    setFocused(nearest.id);
    focus(nearest.id);
  };
  const follow = (event: MouseEvent, href: string) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    router.history.push(href);
  };

  return (
    <div className="graph" role="group" aria-label={label} onKeyDown={press}>
      <div className="graph-tools">
        <Act
          className="button small"
          aria-label="Smaller"
          isOff={scale === 0}
          onPress={() => setScale(scale - 1)}
        >
          −
        </Act>
        <Act
          className="button small"
          aria-label="Larger"
          isOff={scale === SCALES.length - 1}
          onPress={() => setScale(scale + 1)}
        >
          +
        </Act>
      </div>
      <div className="graph-box" ref={box}>
        <svg
          width={laid.width * factor}
          height={laid.height * factor}
          viewBox={`0 0 ${laid.width} ${laid.height}`}
          focusable="false"
          onFocus={() => (hasFocus.current = true)}
          onBlur={() => (hasFocus.current = false)}
        >
          <g aria-hidden="true">
            {edges.map(({ from, to, tone }, index) => (
              <Arrow key={`${index} ${from} ${to}`} points={laid.edges[index] ?? []} tone={tone} />
            ))}
          </g>
          {nodes.map(({ id, label, kind, tone, href }, index) => {
            const [x, y] = laid.nodes[index] ?? [0, 0];
            const place = {
              "data-node": id,
              className: `node ${tone ?? "plain"}${id === current ? " current" : ""}`,
              transform: `translate(${x - WIDTH / 2} ${y - HEIGHT / 2})`,
              tabIndex: id === at ? 0 : -1,
              "aria-current": id === current ? ("true" as const) : undefined,
              onFocus: () => setFocused(id),
            };
            const drawn = (
              <>
                <title>{visible(kind === "" ? label : `${label}, ${kind}`)}</title>
                <rect width={WIDTH} height={HEIGHT} rx={8} />
                <svg width={WIDTH - 6} height={HEIGHT}>
                  <text className="node-label" x={12} y={kind === "" ? 28 : 20}>
                    {short(visible(label), LABEL_MAX)}
                  </text>
                  {kind !== "" && (
                    <text className="node-kind" x={12} y={36}>
                      {short(visible(kind), KIND_MAX)}
                    </text>
                  )}
                </svg>
              </>
            );
            return href === undefined ? (
              <g key={id} role="img" {...place}>
                {drawn}
              </g>
            ) : (
              <a key={id} href={href} onClick={(event) => follow(event, href)} {...place}>
                {drawn}
              </a>
            );
          })}
        </svg>
      </div>
    </div>
  );
}
