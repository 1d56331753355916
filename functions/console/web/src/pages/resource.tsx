// One resource: what it is and has, what is around it, and which versions changed it.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useRouter, useSearch } from "@tanstack/react-router";
import { type ReactNode, Suspense, lazy, useMemo } from "react";
import { Button } from "react-aria-components";
import { ApiError } from "../api/client";
import * as queries from "../api/queries";
import type { Neighbour, Neighbourhood, OneResource, ResourceChange, ResourceName, StackName } from "../api/queries";
import { cloudPage } from "../clouds";
import { bytes, count, kind, nameIn, number, plain, shortType, visible } from "../format";
import { useRightsOnStack } from "../rights";
import type { ResourcesSearch } from "../router";
import { Diff, differenceOf } from "../ui/diff";
import { type Drawing, Hops, draw } from "../ui/drawing";
import { Icon } from "../ui/icons";
import { Badge, Card, Copy, Empty, Facts, Loaded, More, Notice, Result, Table, Time, type Tone, Waiting } from "../ui/parts";
import { hasSecret } from "../values";
import { Value, useStackName } from "./stack";

const Graph = lazy(() => import("../ui/graph"));

const ROUTE = "/$org/$project/$stack/resources";

type Named = Pick<Neighbour, "urn" | "delete">;

/** What the address says of another resource, in the same version and on the same tab. */
const searchOf = ({ q, version, show, hops }: ResourcesSearch, { urn, delete: isDelete }: Named): ResourcesSearch => ({
  q,
  version,
  show,
  hops,
  urn,
  delete: isDelete || undefined,
});

function ResourceLink({ of }: { of: Named & { name?: string } }) {
  const name = useStackName();
  const search = useSearch({ from: ROUTE });
  return (
    <Link
      to={ROUTE}
      params={name}
      search={searchOf(search, of)}
      activeOptions={{ exact: true }}
      resetScroll={false}
    >
      {of.name === undefined ? nameIn(of.urn) : visible(of.name)}
    </Link>
  );
}

const escaped = (name: string) => name.replaceAll("~", "~0").replaceAll("/", "~1");

function Properties({
  title,
  path,
  of,
  open,
}: {
  title: string;
  /** The place that has them. */
  path: string;
  of: Record<string, unknown> | undefined;
  /** Opens the secret at a place; absent if the person may not. */
  open?: (path: string, signal: AbortSignal) => Promise<unknown>;
}) {
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
                <Value
                  value={value}
                  open={open && ((_, pointer, signal) => open(`${path}/${escaped(name)}${pointer}`, signal))}
                />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {entries.some(([, value]) => hasSecret(value)) && (
        <p className="foot">
          {open
            ? "Showing a secret is recorded in the audit trail."
            : "Showing a secret needs the role plan on this stack."}
        </p>
      )}
    </Card>
  );
}

/** Links that are listed. */
const LINKS_MAX = 100;

/** How one resource needs another, unless it is a plain dependency. */
const KINDS: Record<string, string> = {
  provider: "provider",
  deletedWith: "deleted with it",
  replaceWith: "replaced with it",
  viewOf: "view of it",
};

function Links({
  title,
  of,
  total,
  properties = {},
}: {
  title: string;
  of: Neighbour[];
  total: number;
  /** By property, the URNs that it depends on. */
  properties?: Record<string, string[]>;
}) {
  const shown = of.slice(0, LINKS_MAX);
  return (
    <Card title={title} count={total}>
      {shown.length === 0 ? (
        <p className="none">None.</p>
      ) : (
        <ul className="plain-list">
          {shown.map((one) => {
            const names = Object.keys(properties).filter((name) => properties[name]?.includes(one.urn));
            const how = [...names.map(visible), ...one.kinds.flatMap((kind) => KINDS[kind] ?? [])].join(", ");
            return (
              <li key={`${one.delete} ${one.urn}`} className="list-row">
                <ResourceLink of={one} />
                <span className="faint ellipsis">{shortType(one.type)}</span>
                {one.delete && <Badge tone="warn">waits to be deleted</Badge>}
                {how !== "" && <span className="end faint ellipsis">{how}</span>}
              </li>
            );
          })}
          {total > shown.length && <li className="none">and {number(total - shown.length)} more</li>}
        </ul>
      )}
    </Card>
  );
}

function About({ of: resource }: { of: OneResource }) {
  const name = useStackName();
  const { urn, id } = resource;
  // A masked value is the name of nothing.
  const page = cloudPage(resource.valuesHidden ? { ...resource, outputs: undefined } : resource);
  const provider = resource.provider?.split("::").slice(0, -1).join("::");
  const facts: [string, ReactNode][] = [];
  const add = (title: string, value: ReactNode) => facts.push([title, value]);
  const copied = (text: string, what: string) => (
    <span className="row tight">
      <code>{visible(text)}</code>
      <Copy text={text} label={`Copy the ${what}`} />
    </span>
  );
  if (id) add("ID", copied(id, "ID"));
  add("URN", copied(urn, "URN"));
  if (resource.parent) add("Parent", <ResourceLink of={{ urn: resource.parent }} />);
  if (resource.childCount > 0) add("Below it", count(resource.childCount, "resource"));
  if (provider) add("Provider", <ResourceLink of={{ urn: provider }} />);
  add(
    "Changed by version",
    <Link to="/$org/$project/$stack/updates/$version" params={{ ...name, version: String(resource.changed) }}>
      {resource.changed === resource.historyFrom && resource.changed > 1
        ? `${resource.changed} or one before`
        : resource.changed}
    </Link>,
  );
  if (resource.created) add("Created", <Time at={resource.created} />);
  if (resource.modified) add("Changed", <Time at={resource.modified} />);
  if (resource.sourcePosition) add("Written in", <code>{visible(resource.sourcePosition)}</code>);
  return (
    <Card
      title={visible(resource.name)}
      actions={
        <>
          {page && (
            <a className="button small" href={page.href} target="_blank" rel="noreferrer noopener">
              Open in {page.title}
            </a>
          )}
          <Link
            className="button small"
            to={ROUTE}
            params={name}
            search={({ q, version }) => ({ q, version })}
            activeOptions={{ exact: true }}
            resetScroll={false}
          >
            <Icon name="cross" /> Close
          </Link>
        </>
      }
    >
      <div className="pad">
        <p className="row">
          <code>{visible(resource.type)}</code>
          {resource.protect && <Badge tone="warn" icon="lock">Protected</Badge>}
          {resource.external && <Badge tone="plain">Read, not managed</Badge>}
          {!resource.custom && <Badge tone="plain">Component</Badge>}
          {resource.delete && <Badge tone="warn">Waits to be deleted</Badge>}
          {resource.pendingReplacement && <Badge tone="warn">Waits to be replaced</Badge>}
        </p>
        <Facts of={facts} />
      </div>
    </Card>
  );
}

const OPS: Record<string, [string, Tone]> = {
  create: ["created", "good"],
  change: ["changed", "busy"],
  replace: ["replaced", "busy"],
  delete: ["deleted", "bad"],
  seen: ["first seen", "plain"],
};

/** Properties of one entry of a history that are listed. */
const CHANGES_SHOWN = 25;

function Entry({ name, of }: { name: StackName; of: ResourceChange }) {
  const [word, tone] = OPS[of.op] ?? [of.op, "plain"];
  const { version } = of;
  return (
    <li className="step">
      <div className="step-head still">
        <Badge tone={tone}>{word}</Badge>
        <Link
          className="strong"
          to="/$org/$project/$stack/updates/$version"
          params={{ ...name, version: String(version) }}
        >
          {kind(of.kind)} {version}
        </Link>
        <span className="faint ellipsis">of {of.requestedBy.githubLogin}</span>
        <span className="end row tight">
          {of.result !== "succeeded" && <Result result={of.result} />}
          <span className="faint">
            <Time at={of.time} />
          </span>
        </span>
      </div>
      <div className="step-body">
        {of.message && <p className="faint">{plain(of.message)}</p>}
        {of.op === "seen" ? (
          <p className="none">What changed it up to here is not known.</p>
        ) : of.changes.length > 0 ? (
          <Diff of={of.changes.map(differenceOf)} max={CHANGES_SHOWN} />
        ) : null}
        {of.changesCut && <p className="none">It changed more than what is listed.</p>}
        {of.op !== "seen" && (
          <p className="row">
            <Link
              className="button small"
              to={ROUTE}
              params={name}
              search={({ urn }) => ({ urn, version: String(of.op === "delete" ? version - 1 : version) })}
            >
              {of.op === "delete" ? "As it was before" : "As it was then"}
            </Link>
            {version > 1 && (
              <Link
                className="button small"
                to="/$org/$project/$stack/versions"
                params={name}
                search={{ from: String(version - 1), to: String(version) }}
              >
                All changes of version {version}
              </Link>
            )}
          </p>
        )}
      </div>
    </li>
  );
}

const ENDS: Record<string, (version: number) => string> = {
  created: (version) => `Version ${version} created it.`,
  erased: (version) => `Version ${version} was erased, so nothing is known of it and of those before.`,
  unindexed: (version) =>
    `Version ${version} and those before have no index. An operator can make one: statewright stack index.`,
};

function History({ urn, version }: { urn: string; version: number }) {
  const name = useStackName();
  const history = useInfiniteQuery(queries.resourceHistory(name, urn, version));
  const pages = history.data?.pages ?? [];
  const ends = pages.at(-1)?.ends;
  const entries = pages.flatMap((page) => page.entries);
  return (
    <Card title="History">
      <Loaded of={history}>
        {() => (
          <>
            {entries.length === 0 && <Empty icon="clock" title="No change of it is known" />}
            <ul className="steps">
              {entries.map((entry) => (
                <Entry key={entry.version} name={name} of={entry} />
              ))}
            </ul>
            {history.hasNextPage && (
              <More isLoading={history.isFetchingNextPage} onPress={() => void history.fetchNextPage()} />
            )}
            {ends && <p className="foot">{ENDS[ends.why]?.(ends.version)}</p>}
          </>
        )}
      </Loaded>
    </Card>
  );
}

/** The drawing of what is around a resource: what it needs is at its left. */
function drawingOf({ nodes, edges }: Neighbourhood, hrefOf: (of: Named) => string): Drawing {
  return draw(
    nodes.map((row) => ({
      label: row.name,
      kind: shortType(row.type),
      tone: row.delete ? "warn" : undefined,
      href: hrefOf(row),
      group: `${row.parent ?? ""} ${row.type}`,
      above: row.parent ? { name: nameIn(row.parent), href: hrefOf({ urn: row.parent }) } : undefined,
    })),
    // A dependency says more than that both have a provider.
    edges.map(({ from, to, kind }) => ({ from, to, isWeak: kind === "provider" })),
  );
}

function Neighbours({ of }: { of: ResourceName }) {
  const name = useStackName();
  const router = useRouter();
  const search = useSearch({ from: ROUTE });
  const navigate = useNavigate({ from: ROUTE });
  const hops = search.hops ?? 1;
  const found = useQuery(queries.neighbours(name, of, hops));
  const drawing = useMemo(() => {
    const hrefOf = (other: Named) =>
      router.buildLocation({ to: ROUTE, params: name, search: searchOf(search, other) }).href;
    return found.data && drawingOf(found.data, hrefOf);
  }, [found.data, router, name, search]);
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
      <Loaded of={found}>
        {({ nodes, isCut }) => (
          <>
            {isCut && (
              <Notice tone="warn">There is more around it. Here are {number(nodes.length)} that are near.</Notice>
            )}
            {nodes.length < 2 ? (
              <Empty icon="stack" title="Nothing needs it, and it needs nothing" />
            ) : (
              drawing && (
                <Suspense fallback={<Waiting />}>
                  <Graph label="What is around it, as a graph" {...drawing} />
                </Suspense>
              )
            )}
            {drawing?.isFolded && (
              <p className="foot">Those of one type below one parent are drawn as one. The list has each.</p>
            )}
            <ul className="plain-list known" tabIndex={0} aria-label="What is around it, as a list">
              {nodes.slice(1).map((row) => (
                <li key={`${row.delete} ${row.urn}`} className="list-row">
                  <ResourceLink of={row} />
                  <span className="end faint ellipsis">{shortType(row.type)}</span>
                </li>
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </Card>
  );
}

const TABS: [ResourcesSearch["show"], string][] = [
  [undefined, "Properties"],
  ["history", "History"],
  ["neighbours", "Neighbors"],
];

function Has({ of: resource, named }: { of: OneResource; named: ResourceName }) {
  const name = useStackName();
  const may = useRightsOnStack(name);
  const open = may("plan")
    ? (path: string, signal: AbortSignal) => queries.openSecret(name, named, path, signal)
    : undefined;
  return (
    <>
      {resource.valuesHidden && (
        <Notice>
          <Icon name="lock" /> Your role does not allow you to see values.
        </Notice>
      )}
      {resource.valuesBytes === undefined ? (
        <>
          <Properties title="Inputs" path="/inputs" of={resource.inputs} open={open} />
          <Properties title="Outputs" path="/outputs" of={resource.outputs} open={open} />
        </>
      ) : (
        <Notice tone="warn">
          <Icon name="warning" /> Its properties have {bytes(resource.valuesBytes)}, which is too long for a page.
          Download a version of the stack to read them:{" "}
          <Link className="underlined" to="/$org/$project/$stack/versions" params={name}>
            Versions
          </Link>
          . Everything else is here.
        </Notice>
      )}
      <Links
        title="Depends on"
        of={resource.dependencies}
        total={resource.dependencyCount}
        properties={resource.propertyDependencies}
      />
      <Links title="Needed by" of={resource.dependents} total={resource.dependentCount} />
    </>
  );
}

/** The version does not have it; its history may say why. */
function Missing({ of: { urn, version } }: { of: ResourceName }) {
  return (
    <>
      <Notice tone="warn">
        <p>
          Version {version} does not have the resource {nameIn(urn)}.
        </p>
        <p className="faint">
          <code>{visible(urn)}</code>
        </p>
      </Notice>
      <History urn={urn} version={version} />
    </>
  );
}

export function One({ of }: { of: ResourceName }) {
  const name = useStackName();
  const { show } = useSearch({ from: ROUTE });
  const navigate = useNavigate({ from: ROUTE });
  const resource = useQuery(queries.resource(name, of));
  const isMissing = resource.error instanceof ApiError && resource.error.reason === "resource_not_found";
  if (isMissing) return <Missing of={of} />;
  return (
    <Loaded of={resource} rows={6}>
      {(found) => (
        <>
          <About of={found} />
          <div className="tabs" role="group" aria-label="What is shown of it">
            {TABS.map(([tab, text]) => (
              <Button
                key={text}
                className="tab"
                aria-pressed={show === tab}
                onPress={() =>
                  void navigate({ search: (before) => ({ ...before, show: tab }), replace: true, resetScroll: false })
                }
              >
                {text}
              </Button>
            ))}
          </div>
          {show === "history" ? (
            <History urn={of.urn} version={of.version} />
          ) : show === "neighbours" ? (
            <Neighbours of={of} />
          ) : (
            // A shown secret is of this resource alone.
            <Has key={`${of.delete ?? false} ${of.version} ${of.urn}`} of={found} named={of} />
          )}
        </>
      )}
    </Loaded>
  );
}
