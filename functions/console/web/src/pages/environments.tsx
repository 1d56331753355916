// The environments of an organization.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useState } from "react";
import { Button, Input, Label, TextField } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import type { EnvironmentSummary } from "../api/queries";
import { instant, number } from "../format";
import { useRights } from "../rights";
import type { EnvironmentsSearch } from "../router";
import { Icon } from "../ui/icons";
import {
  Badge,
  Confirm,
  Empty,
  Groups,
  Labels,
  Loaded,
  More,
  Notice,
  Search,
  Select,
  Time,
  groupOf,
  hasWords,
  useTitle,
  useTyped,
} from "../ui/parts";

/** Rows that are drawn at first, and with each press of the button. */
const SHOWN = 200;

const DAY = 24 * 3600 * 1000;

const AGES: Record<string, (age: number) => boolean> = {
  week: (age) => age <= 7 * DAY,
  "not-month": (age) => age > 30 * DAY,
  "not-year": (age) => age > 365 * DAY,
};

const changed = (one: EnvironmentSummary) => instant(one.modified);

const ORDERS: Record<string, (a: EnvironmentSummary, b: EnvironmentSummary) => number> = {
  name: (a, b) => a.project.localeCompare(b.project) || a.name.localeCompare(b.name),
  changed: (a, b) => changed(b) - changed(a),
};

function Item({ org, one, isGrouped }: { org: string; one: EnvironmentSummary; isGrouped: boolean }) {
  return (
    <li className="item">
      <span className="item-kind">
        <Icon name="environment" />
      </span>
      <span className="item-name">
        <Link className="strong" to="/$org/esc/$project/$env" params={{ org, project: one.project, env: one.name }}>
          {isGrouped ? one.name : `${one.project}/${one.name}`}
        </Link>
        <Labels of={one.tags} />
      </span>
      <span className="item-status">
        {one.settings.deletionProtected && (
          <Badge tone="plain" icon="lock">
            Protected
          </Badge>
        )}
      </span>
      <span className="item-count faint ellipsis">by {one.ownedBy.githubLogin}</span>
      <span className="item-time faint">
        <Time at={one.modified} />
      </span>
    </li>
  );
}

function New({ org, project: first, onClose }: { org: string; project: string; onClose: () => void }) {
  const [project, setProject] = useState(first);
  const [name, setName] = useState("");
  const client = useQueryClient();
  const navigate = useNavigate();
  const create = async () => {
    const new_ = { project: project.trim(), name: name.trim() };
    await change("POST", "/api/esc/environments/{orgName}", { orgName: org }, new_);
    await client.invalidateQueries({ queryKey: ["environments"] });
    const params = { org, project: new_.project || "default", env: new_.name };
    await navigate({ ignoreBlocker: true, to: "/$org/esc/$project/$env", params });
  };
  return (
    <Confirm title="New environment" action="Create it" isDangerous={false} onClose={onClose} run={create}>
      <TextField className="entry" value={project} onChange={setProject}>
        <Label>Project</Label>
        <Input placeholder="default" />
      </TextField>
      <TextField className="entry" value={name} onChange={setName} autoFocus isRequired>
        <Label>Name</Label>
        <Input />
      </TextField>
    </Confirm>
  );
}

export function Environments() {
  const { org } = useParams({ from: "/$org/-/environments" });
  const { maySomewhere } = useRights(org);
  const search = useSearch({ from: "/$org/-/environments" });
  const navigate = useNavigate({ from: "/$org/-/environments" });
  const set = (changed: Partial<EnvironmentsSearch>) =>
    void navigate({ search: (before) => ({ ...before, ...changed }), replace: true });
  const environments = useQuery(queries.environments(org));
  const [typed, setTyped] = useTyped(search.q ?? "", (q) => set({ q: q || undefined }));
  const words = useDeferredValue(typed);
  const [shown, setShown] = useState(SHOWN);
  const [isCreating, setCreating] = useState(false);
  useTitle("Environments", org);

  const all = environments.data?.items;
  const sort = search.sort ?? "name";
  const group = search.group ?? (sort === "name" ? "" : "none");
  const projects = useMemo(
    () => [...new Set([...(all ?? []).map((one) => one.project), ...(search.project ? [search.project] : [])])].sort(),
    [all, search.project],
  );
  const tags = useMemo(() => [...new Set((all ?? []).flatMap((one) => Object.keys(one.tags)))].sort().slice(0, 50), [all]);
  const found = useMemo(() => {
    const isAged = AGES[search.changed ?? ""] ?? (() => true);
    const now = Date.now();
    const wanted = (all ?? []).filter((one) => {
      const isOfProject = !search.project || one.project === search.project;
      return isOfProject && isAged(now - changed(one)) && hasWords(words, `${one.project}/${one.name}`, one.tags);
    });
    return wanted.sort(ORDERS[sort]);
  }, [all, words, search.project, search.changed, sort]);
  const page = found.slice(0, shown);

  return (
    <div className="page">
      <div className="title-row">
        <h1>Environments</h1>
        {all && (
          <span className="faint">
            {number(found.length)} of {number(all.length)}
          </span>
        )}
        <span className="spring" />
        {maySomewhere("apply") && (
          <Button className="button" onPress={() => setCreating(true)}>
            New environment
          </Button>
        )}
      </div>
      <div className="filters" role="search">
        <Search
          label="Filter by name or tag"
          value={typed}
          onChange={setTyped}
        />
        <Select
          label="Project"
          value={search.project ?? ""}
          onChange={(project) => set({ project: project || undefined })}
          options={[["", "All"], ...projects.map((name): [string, string] => [name, name])]}
        />
        <Select
          label="Changed"
          value={search.changed ?? ""}
          onChange={(changed) => set({ changed: (changed || undefined) as EnvironmentsSearch["changed"] })}
          options={[
            ["", "Any time"],
            ["week", "In the last 7 days"],
            ["not-month", "Not for 30 days"],
            ["not-year", "Not for a year"],
          ]}
        />
        <Select
          label="Sort by"
          value={sort}
          onChange={(sort) => set({ sort: sort === "changed" ? sort : undefined })}
          options={[
            ["name", "Name"],
            ["changed", "Last change"],
          ]}
        />
        <Select
          label="Group by"
          value={group}
          onChange={(group) => set({ group: group || undefined, ...(group === "" && { sort: undefined }) })}
          options={[
            ["", "Project"],
            ["none", "Nothing"],
            ...tags.map((key): [string, string] => [key, `Tag ${key}`]),
          ]}
        />
      </div>
      <Loaded of={environments} rows={8}>
        {({ items, more }) => (
          <>
            {more && <Notice>Here are the first {number(queries.LIST_MAX)}, by name.</Notice>}
            {items.length === 0 && (
              <Empty icon="environment" title="There is no environment yet">
                An environment holds configuration and secrets that several stacks share.
              </Empty>
            )}
            {items.length > 0 && found.length === 0 && (
              <Empty icon="search" title="Nothing matches these filters">
                <Link to="/$org/-/environments" params={{ org }}>
                  Remove the filters
                </Link>
              </Empty>
            )}
            <Groups rows={page} by={group} nameOf={(one) => groupOf(group, one.project, one.tags)}>
              {(one) => <Item key={one.id} org={org} one={one} isGrouped={group === ""} />}
            </Groups>
          </>
        )}
      </Loaded>
      {found.length > shown && <More isLoading={false} onPress={() => setShown(shown + SHOWN)} />}
      {isCreating && <New org={org} project={search.project ?? ""} onClose={() => setCreating(false)} />}
    </div>
  );
}
