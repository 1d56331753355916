// A Terraform state: its lock, outputs and labels, and its versions.

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { Button } from "react-aria-components";
import { address, change, download, reveal } from "../api/client";
import * as queries from "../api/queries";
import type { Rejected, State, StateVersion } from "../api/queries";
import { bytes, count, number, visible } from "../format";
import { Icon } from "../ui/icons";
import {
  Act,
  Badge,
  Card,
  Code,
  Compare,
  Confirm,
  Copy,
  Empty,
  Facts,
  Failure,
  Loaded,
  Masked,
  More,
  Notice,
  Table,
  Time,
  Top,
  Waiting,
  useTitle,
} from "../ui/parts";
import { textOf } from "../values";
import { useLogin, useRightsOnState } from "../rights";
import { LockByHand, Unlock, Wrote } from "./locks";
import { ProtectButton, ProtectedBy } from "./protection";

const ROUTE = "/$org/-/states/$project/$state";

function useTheState() {
  const { org, project, state } = useParams({ from: ROUTE });
  return { name: { org, project, state }, query: useQuery(queries.stateByName(org, project, state)) };
}

function HeldLock({ state }: { state: State }) {
  const [isAsking, ask] = useState(false);
  const may = useRightsOnState(state.organization ?? "", state);
  const login = useLogin();
  const { lock } = state;
  if (!lock) return null;
  const listed = { stateId: state.id, project: state.project, state: state.state, lock };
  return (
    <div className="notice warn row">
      <Badge tone="warn" icon="lock">
        {lock.byHand ? "Locked by hand" : `Locked for ${visible(lock.operation.replace("OperationType", "")) || "a run"}`}
      </Badge>
      <span>
        by <strong>{visible(lock.who || lock.principal)}</strong>, <Time at={lock.since} />
        {lock.info && `: ${visible(lock.info)}`}
      </span>
      <span className="faint">
        <Wrote wrote={lock.wrote} at={lock.wrote ? state.lastWrite : undefined} />
      </span>
      <span className="spring" />
      {(may("member") || (may("plan") && lock.principal === login)) && (
        <Button className="button bad" onPress={() => ask(true)}>
          Unlock
        </Button>
      )}
      {isAsking && <Unlock lock={listed} onClose={() => ask(false)} />}
    </div>
  );
}

export function StatePage() {
  const { name, query } = useTheState();
  const [isLocking, setLocking] = useState(false);
  const state = query.data;
  const may = useRightsOnState(name.org, state);
  const isAdmin = may("admin");
  return (
    <div className="page">
      <Top
        above={
          <Link to="/$org/-/stacks" params={{ org: name.org }} search={{ project: name.project }}>
            {name.project}
          </Link>
        }
        icon="state"
        name={name.state}
      >
        <span className="spring" />
        {isAdmin && state && !state.protection && <ProtectButton of={{ state }} />}
        {state && !state.lock && may("member") && (
          <Button className="button" onPress={() => setLocking(true)}>
            <Icon name="lock" /> Lock by hand
          </Button>
        )}
      </Top>
      {state ? (
        <>
          <HeldLock state={state} />
          <ProtectedBy of={{ state }} by={state.protection} canChange={isAdmin} />
          <nav className="tabs" aria-label="State">
            <Link to={ROUTE} params={name} activeOptions={{ exact: true }}>
              Overview
            </Link>
            <Link to={`${ROUTE}/resources`} params={name} activeOptions={{ includeSearch: false }}>
              Resources
            </Link>
            <Link to={`${ROUTE}/versions`} params={name} activeOptions={{ includeSearch: false }}>
              Versions
            </Link>
            <Link to={`${ROUTE}/settings`} params={name}>
              Settings
            </Link>
          </nav>
          <Outlet />
        </>
      ) : query.error ? (
        <Failure error={query.error} again={() => void query.refetch()} />
      ) : (
        <Waiting rows={6} />
      )}
      {state && isLocking && <LockByHand of={[state]} onClose={() => setLocking(false)} />}
    </div>
  );
}

interface Output {
  value: unknown;
  sensitive?: boolean;
}

/** Names first. Values come from a request that the audit trail records. */
function Outputs({ state }: { state: State }) {
  const versions = useInfiniteQuery(queries.stateVersions(state.id));
  const [values, setValues] = useState<Record<string, Output>>();
  const [error, setError] = useState<unknown>();
  const [isReading, setReading] = useState(false);
  const may = useRightsOnState(state.organization ?? "", state);
  const newest = versions.data?.pages[0]?.versions[0];
  const outputs = newest?.outputs ?? [];
  const show = async () => {
    setReading(true);
    setError(undefined);
    try {
      const url = address("/api/tfstates/{guid}/outputs", { guid: state.id });
      const found = (await reveal(url)) as { outputs: Record<string, Output> | null };
      setValues(found.outputs ?? {});
    } catch (error) {
      setError(error);
    } finally {
      setReading(false);
    }
  };
  return (
    <Card
      title="Outputs"
      count={newest ? outputs.length : undefined}
      actions={
        outputs.length > 0 &&
        may("outputs") && (
          <Act
            className="button small"
            onPress={() => (values ? setValues(undefined) : void show())}
            isOff={isReading}
          >
            <Icon name="eye" /> {values ? "Hide values" : "Show values"}
          </Act>
        )
      }
    >
      {error !== undefined && <Failure error={error} />}
      <Loaded of={versions}>
        {() =>
          newest?.encrypted ? (
            <Empty icon="lock" title="The client encrypted this state">
              So only the client can read its outputs.
            </Empty>
          ) : outputs.length === 0 ? (
            <Empty title="This state has no outputs" />
          ) : (
            <>
              <Table label="Outputs" head={["Name", "Value", "Has it since"]}>
                {outputs.map(({ name, sensitive, since, validity }) => {
                  const value = values?.[name];
                  return (
                    <tr key={name}>
                      <th scope="row">
                        <code>{visible(name)}</code>{" "}
                        {validity?.status === "invalid" && (
                          <Badge tone="bad">breaks its schema</Badge>
                        )}
                      </th>
                      <td>
                        {value === undefined ? (
                          <code className="masked">{sensitive ? "sensitive" : "not shown"}</code>
                        ) : value.sensitive ? (
                          <Masked value={value.value} />
                        ) : (
                          <div className="value">
                            <Code value={value.value} />
                            <Copy text={textOf(value.value)} label="Copy the value" />
                          </div>
                        )}
                      </td>
                      <td>
                        <Time at={since} />
                      </td>
                    </tr>
                  );
                })}
              </Table>
              <p className="foot">Showing values is recorded in the audit trail.</p>
            </>
          )
        }
      </Loaded>
    </Card>
  );
}

export function StateOverview() {
  const { name, query } = useTheState();
  const state = query.data;
  useTitle(`${name.project}/${name.state}`);
  if (!state) return null;
  const labels = Object.entries(state.labels ?? {});
  const current = state.current;
  const at = `${window.location.origin}${state.path}`;
  const block = `terraform {
  backend "http" {
    address        = "${at}"
    lock_address   = "${at}/lock"
    lock_method    = "POST"
    unlock_address = "${at}/lock"
    unlock_method  = "DELETE"
  }
}`;
  return (
    <div className="main-and-side">
      <div>
        <Outputs key={state.version} state={state} />
        <Card title="Backend" actions={<Copy text={block} label="Copy the backend block" />}>
          <div className="pad">
            <pre className="code" tabIndex={0}>
              {block}
            </pre>
            <p className="faint">
              The token is in the environment: <code>TF_HTTP_USERNAME=token TF_HTTP_PASSWORD=TOKEN</code>
            </p>
          </div>
        </Card>
      </div>
      <div>
        <Card title="Now">
          <div className="pad">
            {current ? (
              <Facts
                of={[
                  [
                    "Version",
                    <Link key="v" to={`${ROUTE}/versions`} params={name}>
                      {number(state.version)}
                    </Link>,
                  ],
                  ["Written", <Time key="w" at={state.lastWrite} />],
                  ["Serial", current.serial ?? "–"],
                  ["Resources", current.resourceCount === null ? "unknown" : number(current.resourceCount ?? 0)],
                  ["Size", bytes(current.bytes)],
                  ["Client", current.terraformVersion ?? "–"],
                  ["Lineage", <code key="l">{current.lineage ?? "–"}</code>],
                  ...(current.encrypted ? ([["Encrypted", "by the client"]] as [string, ReactNode][]) : []),
                ]}
              />
            ) : (
              <p>No client has written it yet.</p>
            )}
          </div>
        </Card>
        <Card title="Labels" count={labels.length}>
          {labels.length === 0 ? (
            <p className="none">It has none.</p>
          ) : (
            <div className="pad">
              <Facts of={labels.map(([key, value]) => [key, String(value)])} />
            </div>
          )}
        </Card>
        <Card title="About">
          <div className="pad">
            <Facts
              of={[
                ["Created", <Time key="c" at={state.created} />],
                ["By", state.createdBy],
                [
                  "ID",
                  <span key="i" className="row tight">
                    <code>{state.id}</code>
                    <Copy text={state.id} label="Copy the ID" />
                  </span>,
                ],
              ]}
            />
          </div>
        </Card>
      </div>
    </div>
  );
}

type ChangesOf = NonNullable<StateVersion["changes"]>;

function Addresses({ of }: { of: ChangesOf }) {
  const kinds: ["added" | "changed" | "removed", string][] = [
    ["added", "+"],
    ["changed", "~"],
    ["removed", "−"],
  ];
  return (
    <ul className="diff">
      {kinds.flatMap(([how, sign]) => {
        const [found, all] = [of[how], of[`${how}Count`]];
        return [
          ...found.map((address) => (
            <li key={`${how} ${address}`} className={`diff-${how}`}>
              <span className="sign" aria-hidden="true">
                {sign}
              </span>
              <span className="unseen">{how}: </span>
              <code>{visible(address)}</code>
            </li>
          )),
          ...(all > found.length
            ? [
                <li key={how} className="none">
                  and {number(all - found.length)} more {how}
                </li>,
              ]
            : []),
        ];
      })}
    </ul>
  );
}

function Comparison({ guid, from, to }: { guid: string; from: string; to: string }) {
  const diff = useQuery(queries.stateDiff(guid, from, to));
  const { name } = useTheState();
  return (
    <Card
      title={`Version ${from} compared with version ${to}`}
      actions={
        <Link
          className="button small"
          to={`${ROUTE}/versions`}
          params={name}
          activeOptions={{ exact: true }}
        >
          <Icon name="cross" /> Close
        </Link>
      }
    >
      <Loaded of={diff}>
        {({ resources, changedProperties, outputsAdded, outputsChanged, outputsRemoved }) => {
          const outputs = [
            ...outputsAdded.map((output): [string, string] => [output, "added"]),
            ...outputsChanged.map((output): [string, string] => [output, "changed"]),
            ...outputsRemoved.map((output): [string, string] => [output, "removed"]),
          ];
          const isSame =
            resources && resources.addedCount + resources.changedCount + resources.removedCount + outputs.length === 0;
          if (isSame) return <Empty icon="check" title="No resource and no output differs" />;
          return (
            <div className="pad">
              {resources ? (
                <Addresses of={resources} />
              ) : (
                <Notice tone="warn">The server cannot read one of the two: its client encrypted it.</Notice>
              )}
              {changedProperties.map(({ address, properties, more }) => (
                <div key={address} className="in-one">
                  <h3>
                    <code>{visible(address)}</code>
                  </h3>
                  <ul className="diff">
                    {properties.map(({ path, change }) => (
                      <li key={path} className={`diff-${change}`}>
                        <code className="diff-path">{visible(path)}</code>
                        <span className="faint">{change}</span>
                      </li>
                    ))}
                    {more > 0 && <li className="none">and {count(more, "property", "properties")} more</li>}
                  </ul>
                </div>
              ))}
              {outputs.length > 0 && (
                <div className="in-one">
                  <h3>Outputs</h3>
                  <ul className="diff">
                    {outputs.map(([output, how]) => (
                      <li key={output} className={`diff-${how}`}>
                        <code className="diff-path">{visible(output)}</code>
                        <span className="faint">{how}</span>
                      </li>
                    ))}
                  </ul>
                </div>
              )}
              <p className="faint">Values are not shown: a Terraform state contains secrets in plain text.</p>
            </div>
          );
        }}
      </Loaded>
    </Card>
  );
}

const SOURCES: Record<string, string> = { written: "Written", restored: "Restored", promoted: "Refused write, accepted" };

const REFUSED: Record<string, string> = {
  locked: "somebody else held the lock",
  displaced: "its lock was taken away",
  stale: "it had no lock, and another write was first",
  "lock-required": "the state requires the lock",
  protected: "the state is protected, and this would have emptied it",
  strict: "the state is strict, and serial or lineage do not follow",
  removed: "the state was deleted",
};

export function StateVersions() {
  const { name, query } = useTheState();
  const search = useSearch({ from: `${ROUTE}/versions` });
  const navigate = useNavigate({ from: `${ROUTE}/versions` });
  const client = useQueryClient();
  const state = query.data;
  const guid = state?.id ?? "";
  const may = useRightsOnState(name.org, state);
  const versions = useInfiniteQuery({ ...queries.stateVersions(guid), enabled: guid !== "" });
  const rejected = useQuery({ ...queries.rejected(guid), enabled: guid !== "" });
  const [restored, setRestored] = useState<string>();
  const [error, setError] = useState<unknown>();
  useTitle("Versions", `${name.project}/${name.state}`);
  if (!state) return null;
  const all = versions.data?.pages.flatMap((page) => page.versions) ?? [];
  const save = (version: string) => {
    setError(undefined);
    const url = address("/api/tfstates/{guid}/versions/{version}/text", { guid, version });
    download(url).catch(setError);
  };
  const restore = async (version: string) => {
    await change("POST", "/api/tfstates/{guid}/versions/{version}/restore", { guid, version });
    await client.invalidateQueries();
  };
  const buttons = (version: string, isNewest: boolean) => (
    <>
      {!isNewest && may("member") && (
        <Button className="button small" aria-label={`Restore version ${version}`} onPress={() => setRestored(version)}>
          Restore
        </Button>
      )}
      {may("plan") && (
        <Button className="button small" aria-label={`Download version ${version}`} onPress={() => save(version)}>
          <Icon name="download" />
        </Button>
      )}
    </>
  );
  return (
    <>
      {search.from && search.to && <Comparison guid={guid} from={search.from} to={search.to} />}
      {error !== undefined && <Failure error={error} />}
      <Card
        title="Versions"
        count={state.version}
        actions={
          state.version > 1 && (
            <Compare
              newest={state.version}
              from={Number(search.from) || state.version - 1}
              to={Number(search.to) || state.version}
              onChange={(from, to) =>
                void navigate({ search: { from: String(from), to: String(to) } })
              }
            />
          )
        }
      >
        <Loaded of={versions}>
          {() =>
            all.length === 0 ? (
              <Empty icon="clock" title="No client has written this state yet" />
            ) : (
              <Table label="Versions" head={["Version", "Changes", "By", "Serial", "Size", "When", ""]}>
                {all.map((one) => (
                  <tr key={one.version}>
                    <td>
                      <span className="strong">{one.version}</span>
                      {one.source !== "written" && (
                        <div className="faint">
                          {SOURCES[one.source]}
                          {one.source === "restored" && `: ${one.of}`}
                        </div>
                      )}
                    </td>
                    <td>
                      {one.changes ? (
                        <span className="changes">
                          {one.changes.addedCount > 0 && <span className="op-create">+{one.changes.addedCount}</span>}
                          {one.changes.changedCount > 0 && <span className="op-update">~{one.changes.changedCount}</span>}
                          {one.changes.removedCount > 0 && <span className="op-delete">−{one.changes.removedCount}</span>}
                          {one.changes.addedCount + one.changes.changedCount + one.changes.removedCount === 0 && (
                            <span className="faint">no resource</span>
                          )}
                        </span>
                      ) : (
                        <span className="faint">–</span>
                      )}{" "}
                      {one.serialFell && <Badge tone="warn">serial fell</Badge>}
                      {one.lineageChanged && <Badge tone="warn">other lineage</Badge>}
                    </td>
                    <td>
                      {one.by}
                      <div className="faint">
                        {one.lock ? visible(`${one.lock.operation.replace("OperationType", "")} of ${one.lock.who}`) : "without a lock"}
                      </div>
                    </td>
                    <td>{one.serial ?? "–"}</td>
                    <td>{bytes(one.bytes)}</td>
                    <td>
                      <Time at={one.at} />
                    </td>
                    <td className="actions">
                      {one.version > 1 && (
                        <Button
                          className="button small"
                          aria-label={`Changes of version ${one.version}`}
                          onPress={() =>
                            void navigate({ search: { from: String(one.version - 1), to: String(one.version) } })
                          }
                        >
                          Changes
                        </Button>
                      )}
                      {buttons(String(one.version), one.version === state.version)}
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
        {versions.hasNextPage && (
          <More isLoading={versions.isFetchingNextPage} onPress={() => void versions.fetchNextPage()} />
        )}
      </Card>
      {rejected.data && rejected.data.rejected.length > 0 && (
        <Card title="Refused writes" count={rejected.data.rejected.length}>
          <Table label="Refused writes" head={["Why", "By", "Serial", "Size", "When", ""]}>
            {rejected.data.rejected.map((one: Rejected) => (
              <tr key={one.id}>
                <td>{REFUSED[String(one.why)] ?? String(one.why)}</td>
                <td>{one.by}</td>
                <td>{one.serial ?? "–"}</td>
                <td>{bytes(one.bytes)}</td>
                <td>
                  <Time at={one.at} />
                </td>
                <td className="actions">{buttons(one.id, false)}</td>
              </tr>
            ))}
          </Table>
          <p className="foot">What a client sent when it could not write. It may be the only description of what exists.</p>
        </Card>
      )}
      {restored !== undefined && (
        <Confirm
          title={`Make version ${restored.slice(0, 12)} the next one?`}
          action="Restore it"
          onClose={() => setRestored(undefined)}
          run={() => restore(restored)}
        >
          <p>
            The state becomes what it was, as a new version with a higher serial. All versions stay. Nothing changes in the
            cloud: run <code>tofu plan</code> before the next apply.
          </p>
        </Confirm>
      )}
    </>
  );
}
