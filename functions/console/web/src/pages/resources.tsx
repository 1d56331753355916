// The resources of a version, as a tree that is read page by page; and one of them.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import * as queries from "../api/queries";
import type { ResourcePage, ResourceRow } from "../api/queries";
import { count, number, shortType, visible } from "../format";
import { Icon } from "../ui/icons";
import { Badge, Empty, Loaded, Notice, Search, Waiting, useTitle, useTyped } from "../ui/parts";
import { One } from "./resource";
import { useStackName } from "./stack";

/** Names a row: a URN occurs again if the resource waits to be deleted. */
const keyOf = ({ urn, delete: isDelete }: { urn: string; delete?: boolean }) => `${isDelete ? "-" : "+"}${urn}`;

/** All rows that were read. A page begins with what is above its first match, also if that was on the one before. */
function rowsOf(pages: ResourcePage[]): ResourceRow[] {
  const seen = new Set<string>();
  return pages.flatMap((page) =>
    page.resources.filter((row) => {
      const isRepeated = row.isContext && seen.has(keyOf(row));
      seen.add(keyOf(row));
      return !isRepeated;
    }),
  );
}

/** The rows that no closed one above them hides. */
function openOf(rows: ResourceRow[], closed: ReadonlySet<string>): ResourceRow[] {
  let hidden = Number.POSITIVE_INFINITY;
  return rows.filter((row) => {
    if (row.depth > hidden) return false;
    hidden = closed.has(keyOf(row)) ? row.depth : Number.POSITIVE_INFINITY;
    return true;
  });
}

const ROW = 34;

/** Rows before the end of what was read, at which the next page is asked for. */
const AHEAD = 100;

function Tree({
  rows: all,
  isFiltered,
  selected,
  onSelect,
  hasMore,
  onMore,
}: {
  rows: ResourceRow[];
  isFiltered: boolean;
  selected: string | undefined;
  onSelect: (row: ResourceRow) => void;
  /** Whether there are more, which can be asked for now. */
  hasMore: boolean;
  onMore: () => void;
}) {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  // What was found is not hidden.
  const rows = useMemo(() => (isFiltered ? all : openOf(all, closed)), [all, closed, isFiltered]);
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  useEffect(() => {
    if (hasMore && last + AHEAD >= rows.length) onMore();
  }, [hasMore, last, rows.length, onMore]);

  const found = rows.findIndex((row) => keyOf(row) === selected);
  const [focus, setFocus] = useState(Math.max(0, found));
  const at = Math.min(focus, Math.max(0, rows.length - 1));
  const isFound = found >= 0;
  // Once, and not again with each page that comes.
  useEffect(() => {
    if (!isFound) return;
    setFocus(found);
    virtual.scrollToIndex(found, { align: "auto" });
  }, [isFound, selected]);

  const go = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setFocus(next);
    virtual.scrollToIndex(next, { align: "auto" });
  };
  const toggle = (row: ResourceRow, close: boolean) => {
    const next = new Set(closed);
    if (close) next.add(keyOf(row));
    else next.delete(keyOf(row));
    setClosed(next);
  };
  const press = (event: KeyboardEvent) => {
    const row = rows[at];
    if (!row) return;
    const isParent = row.childCount > 0 && !isFiltered;
    const isOpen = isParent && !closed.has(keyOf(row));
    const keys: Record<string, () => void> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      PageDown: () => go(at + 10),
      PageUp: () => go(at - 10),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      ArrowRight: () => (isParent && !isOpen ? toggle(row, false) : go(at + 1)),
      ArrowLeft: () => {
        if (isOpen) toggle(row, true);
        else go(rows.slice(0, at).findLastIndex((one) => one.depth < row.depth));
      },
      Enter: () => onSelect(row),
      " ": () => onSelect(row),
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
      aria-activedescendant={items.some(({ index }) => index === at) ? `row-${at}` : undefined}
      onKeyDown={press}
    >
      <div style={{ height: virtual.getTotalSize(), position: "relative" }} role="none">
        {items.map(({ index, start }) => {
          const row = rows[index];
          if (!row) return null;
          const isParent = row.childCount > 0 && !isFiltered;
          const isOpen = !closed.has(keyOf(row));
          return (
            <div
              key={index}
              id={`row-${index}`}
              role="treeitem"
              aria-level={row.depth + 1}
              aria-expanded={isParent ? isOpen : undefined}
              aria-selected={keyOf(row) === selected}
              className={`tree-row${index === at ? " at" : ""}`}
              style={{ transform: `translateY(${start}px)`, paddingInlineStart: 8 + Math.min(row.depth, 12) * 18 }}
              onClick={() => {
                setFocus(index);
                onSelect(row);
              }}
            >
              <span
                className="twist"
                onClick={(event) => {
                  if (!isParent) return;
                  event.stopPropagation();
                  toggle(row, isOpen);
                }}
              >
                {isParent && <Icon name={isOpen ? "down" : "right"} />}
              </span>
              <span className={`ellipsis${row.isContext ? " faint" : ""}`}>{visible(row.name)}</span>
              {row.protect && <Icon name="lock" />}
              {row.delete && <Badge tone="warn">waits to be deleted</Badge>}
              <span className="end faint ellipsis type">{shortType(row.type)}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** Milliseconds without a key, after which the server is asked. */
const TYPING = 250;

function Filtered({ version }: { version: number }) {
  const name = useStackName();
  const search = useSearch({ from: "/$org/$project/$stack/resources" });
  const navigate = useNavigate({ from: "/$org/$project/$stack/resources" });
  const [typed, setTyped] = useTyped(
    search.q ?? "",
    (q) => void navigate({ search: (before) => ({ ...before, q: q || undefined }), replace: true, resetScroll: false }),
    TYPING,
  );
  const filter = search.q?.trim() || undefined;
  const tree = useInfiniteQuery(queries.resources(name, version, filter));
  const rows = useMemo(() => rowsOf(tree.data?.pages ?? []), [tree.data]);
  const first = tree.data?.pages[0];
  const { data, error, hasNextPage, isFetching, isError, fetchNextPage, refetch } = tree;
  if (first?.total === 0) return <Empty icon="stack" title="This version has no resources" />;
  const isSelected = search.urn !== undefined;
  const pending = first?.pendingCount ?? 0;
  return (
    <>
      {pending > 0 && (
        <Notice tone="warn">
          An update ended in the middle of {count(pending, "operation")}. <code>pulumi refresh</code> looks what became of
          {pending === 1 ? " it" : " them"}.
        </Notice>
      )}
      <div className={`resources${isSelected ? " with-one" : ""}`}>
        <div className="card tree-card">
          <div className="filters">
            <Search label="Filter by name, type or ID" value={typed} onChange={setTyped} />
            {first && (
              <span className="faint" role="status">
                {filter !== undefined && first.matches !== undefined
                  ? `${number(first.matches)} of ${number(first.total)}`
                  : `${number(first.total)} in all`}
              </span>
            )}
          </div>
          <div aria-busy={tree.isPlaceholderData}>
            <Loaded of={{ data, error, refetch: tree.isFetchNextPageError ? fetchNextPage : refetch }} rows={8}>
              {() =>
                rows.length === 0 && !isFetching && !hasNextPage ? (
                  <Empty icon="search" title="No resource matches the filter" />
                ) : (
                  <Tree
                    key={`${version} ${filter ?? ""}`}
                    rows={rows}
                    isFiltered={filter !== undefined}
                    selected={search.urn === undefined ? undefined : keyOf({ urn: search.urn, delete: search.delete })}
                    onSelect={({ urn, delete: isDelete }) =>
                      void navigate({
                        search: (before) => ({ ...before, urn, delete: isDelete || undefined }),
                        resetScroll: false,
                      })
                    }
                    hasMore={hasNextPage && !isFetching && !isError}
                    onMore={fetchNextPage}
                  />
                )
              }
            </Loaded>
          </div>
        </div>
        {search.urn !== undefined && (
          <div className="one">
            <One key={keyOf({ urn: search.urn, delete: search.delete })} of={{ urn: search.urn, version, delete: search.delete }} />
          </div>
        )}
      </div>
    </>
  );
}

export function Resources() {
  const name = useStackName();
  const stack = useQuery(queries.stack(name)).data;
  const search = useSearch({ from: "/$org/$project/$stack/resources" });
  const wanted = search.version === undefined ? undefined : Number(search.version);
  const version = wanted ?? stack?.version;
  useTitle("Resources", `${name.project}/${name.stack}`);
  if (version === undefined) return <Waiting rows={8} />;
  if (version === 0) return <Empty icon="stack" title="This stack has no resources yet" />;
  return (
    <>
      {wanted !== undefined && (
        <Notice>
          This is version {wanted}.{" "}
          <Link to="/$org/$project/$stack/resources" params={name} search={{ ...search, version: undefined }}>
            To the current one
          </Link>
        </Notice>
      )}
      {stack?.currentOperation && wanted === undefined && (
        <Notice>An update is running. These are the resources of version {version}, before it.</Notice>
      )}
      <Filtered version={version} />
    </>
  );
}
