// What a person looks at first: what runs, what failed, what is locked, what changed.

import { useQueries, useQuery } from "@tanstack/react-query";
import { Link, Navigate, useParams } from "@tanstack/react-router";
import * as queries from "../api/queries";
import type { StackSummary } from "../api/queries";
import { count, counted, duration, instant, kind, number, plain, visible } from "../format";
import { Badge, Card, Changes, Empty, Failure, Loaded, Result, Table, Time, Waiting, useNow, useTitle } from "../ui/parts";
import { Icon, type IconName } from "../ui/icons";
import { NotHere } from "./nothere";

/** Stacks whose last update is read for the page. */
const RECENT = 10;

/** Leads to the organization that the person works in. */
export function Start() {
  const user = useQuery(queries.user);
  const chosen = useQuery(queries.defaultOrganization);
  useTitle("Start");
  if (user.error) return <Failure error={user.error} again={() => void user.refetch()} />;
  if (!user.data || (!chosen.data && !chosen.error)) {
    return (
      <div className="page">
        <Waiting />
      </div>
    );
  }
  const names = user.data.organizations.map((one) => one.githubLogin);
  const org = names.find((name) => name === chosen.data?.GitHubLogin) ?? names[0];
  if (org !== undefined) return <Navigate to="/$org" params={{ org }} replace />;
  return (
    <div className="page narrow">
      <Empty icon="person" title="You are a member of no organization">
        Ask an admin to add {user.data.githubLogin} to one.
      </Empty>
    </div>
  );
}

const nameOf = (one: StackSummary) => ({ org: one.orgName, project: one.projectName, stack: one.stackName });

function Running({ stacks }: { stacks: StackSummary[] }) {
  const now = useNow(1000);
  const details = useQueries({ queries: stacks.map((one) => queries.stack(nameOf(one))) });
  return (
    <ul className="plain-list">
      {stacks.map((one, index) => {
        const stack = details[index]?.data;
        const operation = stack?.currentOperation;
        return (
          <li key={one.id} className="list-row">
            <Badge tone="busy" icon="running">
              {kind(operation?.kind ?? "update")}
            </Badge>
            <Link
              className="strong"
              to="/$org/$project/$stack/updates/$version"
              params={{ ...nameOf(one), version: stack ? String(stack.version + 1) : "latest" }}
            >
              {one.projectName}/{one.stackName}
            </Link>
            <span className="faint">
              {operation && `by ${operation.author}, for ${duration((now - instant(operation.started)) / 1000)}`}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

function Tile({ icon, value, text, tone }: { icon: IconName; value: string; text: string; tone?: string }) {
  return (
    <div className={`tile ${tone ?? ""}`}>
      <Icon name={icon} />
      <span className="tile-value">{value}</span>
      <span className="tile-text">{text}</span>
    </div>
  );
}

export function Home() {
  const { org } = useParams({ from: "/$org" });
  const user = useQuery(queries.user);
  useTitle(org);
  if (!user.data) return <div className="page">{user.error ? <Failure error={user.error} /> : <Waiting rows={6} />}</div>;
  if (org === user.data.githubLogin && !user.data.organizations.some((one) => one.githubLogin === org)) {
    return <Navigate to="/" replace />;
  }
  if (!user.data.organizations.some((one) => one.githubLogin === org)) return <NotHere />;
  return <Overview org={org} />;
}

function Overview({ org }: { org: string }) {
  const stacks = useQuery(queries.stacks(org));
  const states = useQuery(queries.states(org));
  const locks = useQuery(queries.locks(org));
  const all = stacks.data?.items ?? [];
  const running = all.filter((one) => one.lastUpdate === 0);
  const recent = all
    .filter((one) => (one.lastUpdate ?? 0) > 0)
    .sort((a, b) => (b.lastUpdate ?? 0) - (a.lastUpdate ?? 0))
    .slice(0, RECENT);
  const last = useQueries({ queries: recent.map((one) => queries.latest(nameOf(one), one.lastUpdate ?? 0)) });
  const updates = recent.flatMap((one, index) => {
    const update = last[index]?.data;
    return update ? [{ one, update }] : [];
  });
  // An older program did not say in the list how its updates ended: those are known of the newest stacks only.
  const unlisted = new Map(updates.map(({ one, update }) => [one.id, update]));
  const lastResult = (one: StackSummary) => {
    const update = unlisted.get(one.id);
    return one.lastUpdateResult ?? (update ? queries.resultOf(update.info) : "succeeded");
  };
  const failed = all
    .filter((one) => one.lastUpdate !== 0 && lastResult(one) !== "succeeded")
    .sort((a, b) => (b.lastUpdate ?? 0) - (a.lastUpdate ?? 0));
  const written = (states.data?.items ?? [])
    .filter((one) => one.lastWrite)
    .sort((a, b) => instant(b.lastWrite ?? "") - instant(a.lastWrite ?? ""))
    .slice(0, RECENT);
  const resources = [...all, ...(states.data?.items ?? [])].reduce((sum, one) => sum + (one.resourceCount ?? 0), 0);
  const plus = (more: boolean | undefined) => (more ? "+" : "");
  const isEmpty = stacks.data?.items.length === 0 && states.data?.items.length === 0;

  return (
    <div className="page">
      <h1>{org}</h1>
      <div className="tiles">
        <Tile
          icon="stack"
          value={stacks.data ? number(all.length) + plus(stacks.data.more) : "…"}
          text={counted(all.length, "stack")}
        />
        <Tile
          icon="state"
          value={states.data ? number(states.data.items.length) + plus(states.data.more) : "…"}
          text={counted(states.data?.items.length, "state")}
        />
        <Tile
          icon="screen"
          value={stacks.data && states.data ? number(resources) + plus(stacks.data.more || states.data.more) : "…"}
          text={counted(resources, "resource")}
        />
        <Tile icon="running" value={stacks.data ? number(running.length) : "…"} text="running now" tone={running.length > 0 ? "busy" : ""} />
        <Tile
          icon="lock"
          value={locks.data ? number(locks.data.items.length) : locks.error ? "–" : "…"}
          text={counted(locks.data?.items.length, "state locked", "states locked")}
          tone={locks.data?.items.length ? "warn" : ""}
        />
      </div>
      {isEmpty ? (
        <Card title="Nothing is stored here yet">
          <div className="pad">
            <p>Log in with Pulumi, and create a stack:</p>
            <pre className="code" tabIndex={0}>
              {`pulumi login ${window.location.origin}\npulumi stack init ${org}/PROJECT/dev`}
            </pre>
            <p>For OpenTofu and Terraform: <code>statewright login {window.location.origin}</code></p>
          </div>
        </Card>
      ) : (
        <div className="columns">
          <Card title="Runs now" count={running.length}>
            <Loaded of={stacks}>
              {() => (running.length === 0 ? <p className="none">No update is running.</p> : <Running stacks={running.slice(0, RECENT)} />)}
            </Loaded>
          </Card>
          <Card
            title="Failed last time"
            count={stacks.data ? failed.length : undefined}
            actions={
              failed.length > RECENT && (
                <Link to="/$org/-/stacks" params={{ org }} search={{ sort: "result" }}>
                  All of them
                </Link>
              )
            }
          >
            <Loaded of={stacks}>
              {({ more }) =>
                failed.length === 0 ? (
                  <p className="none">
                    {more ? `Of the first ${number(queries.LIST_MAX)} stacks, none failed.` : "No stack failed."}
                  </p>
                ) : (
                  <ul className="plain-list">
                    {failed.slice(0, RECENT).map((one) => (
                      <li key={one.id} className="list-row">
                        <Result result={lastResult(one)} />
                        <Link
                          className="strong"
                          to="/$org/$project/$stack/updates/$version"
                          params={{
                            ...nameOf(one),
                            version: String(one.version ?? unlisted.get(one.id)?.version ?? "latest"),
                          }}
                          search={{ show: "diagnostics" }}
                        >
                          {one.projectName}/{one.stackName}
                        </Link>
                        <span className="faint">
                          <Time at={one.lastUpdate} />
                        </span>
                      </li>
                    ))}
                  </ul>
                )
              }
            </Loaded>
          </Card>
          <Card
            title="Locked states"
            count={locks.data?.items.length}
            actions={
              <Link to="/$org/-/locks" params={{ org }}>
                All locks
              </Link>
            }
          >
            <Loaded of={locks}>
              {({ items }) =>
                items.length === 0 ? (
                  <p className="none">No state is locked.</p>
                ) : (
                  <ul className="plain-list">
                    {items.slice(0, RECENT).map(({ stateId, project, state, lock }) => (
                      <li key={stateId} className="list-row">
                        <Badge tone="warn" icon="lock">
                          {lock.byHand ? "By hand" : visible(lock.operation.replace("OperationType", "")) || "Locked"}
                        </Badge>
                        <Link className="strong" to="/$org/-/states/$project/$state" params={{ org, project, state }}>
                          {project}/{state}
                        </Link>
                        <span className="faint">
                          by {visible(lock.who || lock.principal)}, <Time at={lock.since} />
                        </span>
                      </li>
                    ))}
                  </ul>
                )
              }
            </Loaded>
          </Card>
          <Card title="States written last">
            <Loaded of={states}>
              {() =>
                written.length === 0 ? (
                  <p className="none">No state was written yet.</p>
                ) : (
                  <ul className="plain-list">
                    {written.slice(0, 5).map((one) => (
                      <li key={one.id} className="list-row">
                        <Icon name="state" />
                        <Link
                          className="strong"
                          to="/$org/-/states/$project/$state"
                          params={{ org, project: one.project, state: one.state }}
                        >
                          {one.project}/{one.state}
                        </Link>
                        <span className="faint">
                          version {one.version}, <Time at={one.lastWrite} />
                        </span>
                      </li>
                    ))}
                  </ul>
                )
              }
            </Loaded>
          </Card>
        </div>
      )}
      {updates.length > 0 && (
        <Card title="Recent activity">
          <Table label="Recent activity" head={["Stack", "Update", "Result", "Changes", "Who", "When"]}>
            {updates.map(({ one, update }) => (
              <tr key={one.id}>
                <td>
                  <Link to="/$org/$project/$stack" params={nameOf(one)}>
                    {one.projectName}/{one.stackName}
                  </Link>
                </td>
                <td>
                  <Link
                    to="/$org/$project/$stack/updates/$version"
                    params={{ ...nameOf(one), version: String(update.version) }}
                  >
                    {kind(update.info.kind)} {update.version}
                  </Link>
                  {update.info.message && <div className="faint ellipsis message">{plain(update.info.message)}</div>}
                </td>
                <td>
                  <Result result={queries.resultOf(update.info)} />
                </td>
                <td>
                  <Changes counts={update.info.resourceChanges} />
                </td>
                <td>{update.requestedBy.githubLogin}</td>
                <td>
                  <Time at={update.info.endTime} />
                </td>
              </tr>
            ))}
          </Table>
          <p className="foot">
            The newest update of the {count(updates.length, "stack")} that changed last. Each stack has its own history.
          </p>
        </Card>
      )}
    </div>
  );
}
