// Everything that somebody holds: updates of stacks, and locks of states.

import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import type { ListedLock, StackName, StackSummary } from "../api/queries";
import { instant, kind, number, visible } from "../format";
import { useLogin, useRights } from "../rights";
import { Icon } from "../ui/icons";
import { Badge, Card, Confirm, Empty, Loaded, Notice, Select, Table, Time, useTitle } from "../ui/parts";
import { HoldStack, ReleaseStack } from "./holds";

/** Running updates, and stacks on hold, whose holder is read for the page. */
const RUNNING_MAX = 50;

const nameOf = (one: StackSummary): StackName => ({
  org: one.orgName,
  project: one.projectName,
  stack: one.stackName,
});

export function CancelUpdate({ name, id, onClose }: { name: StackName; id: string; onClose: () => void }) {
  const client = useQueryClient();
  const cancel = async (reason: string) => {
    const names = { orgName: name.org, projectName: name.project, stackName: name.stack, updateID: id };
    const path = "/api/stacks/{orgName}/{projectName}/{stackName}/update/{updateID}/cancel";
    await change("POST", path, names, { reason });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title={`Cancel the update of ${name.project}/${name.stack}?`}
      action="Cancel the update"
      needsReason
      onClose={() => {
        onClose();
        // It may have ended by itself meanwhile.
        void client.invalidateQueries();
      }}
      run={cancel}
    >
      <p>
        Its client can save nothing more. What it saved so far becomes the next version, so the stack stays usable.
      </p>
      <p>
        A resource that is being created at this moment may exist in the cloud and not in the state.{" "}
        <code>pulumi refresh</code> shows it.
      </p>
    </Confirm>
  );
}

export function Unlock({ lock, onClose }: { lock: ListedLock; onClose: () => void }) {
  const client = useQueryClient();
  const unlock = async (reason: string) => {
    await change("DELETE", "/api/tfstates/{guid}/lock", { guid: lock.stateId }, { reason, ID: lock.lock.ID });
    await client.invalidateQueries();
  };
  const who = visible(lock.lock.who || lock.lock.principal);
  return (
    <Confirm title={`Unlock ${lock.project}/${lock.state}?`} action="Unlock" needsReason onClose={onClose} run={unlock}>
      <p>
        {who} took the lock <Time at={lock.lock.since} />. If that run still works, its next write is refused, and the
        server keeps what it sends next to the versions.
      </p>
    </Confirm>
  );
}

/** A state that can be locked. */
interface Lockable {
  id: string;
  project: string;
  state: string;
}

/** Locks a state by hand: the only one that is given, or the one that the person chooses. */
export function LockByHand({ of, onClose }: { of: Lockable[]; onClose: () => void }) {
  const client = useQueryClient();
  // The list may change while the dialog is open.
  const [isOne] = useState(of.length === 1);
  const [id, choose] = useState(isOne ? (of[0]?.id ?? "") : "");
  const chosen = of.find((one) => one.id === id);
  const lock = async (reason: string) => {
    await change("POST", "/api/tfstates/{guid}/lock", { guid: id }, { reason });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title={isOne && chosen ? `Lock ${chosen.project}/${chosen.state} by hand?` : "Lock a state by hand?"}
      action="Lock it"
      isDangerous={false}
      isReady={chosen !== undefined}
      needsReason
      onClose={onClose}
      run={lock}
    >
      {!isOne && (
        <Select
          label="State"
          value={id}
          onChange={choose}
          options={[
            ["", "Choose a state"],
            ...of.map((one): [string, string] => [one.id, `${one.project}/${one.state}`]),
          ]}
        />
      )}
      <p>No plan and no apply starts until somebody unlocks it. Clients show the reason.</p>
    </Confirm>
  );
}

/** Whether a holder has written anything, and when it last did. */
export function Wrote({ wrote, at }: { wrote: boolean; at?: number | string | null | undefined }) {
  if (!wrote) return "nothing written yet";
  return at ? (
    <>
      wrote <Time at={at} />
    </>
  ) : (
    "has written"
  );
}

export function Locks() {
  const { org } = useParams({ from: "/$org/-/locks" });
  const stacks = useQuery(queries.stacks(org));
  const locks = useQuery(queries.locks(org));
  const running = (stacks.data?.items ?? []).filter((one) => one.lastUpdate === 0);
  const names = running.slice(0, RUNNING_MAX).map(nameOf);
  const onHold = (stacks.data?.items ?? []).filter((one) => one.onHold);
  const heldNames = onHold.slice(0, RUNNING_MAX).map(nameOf);
  const holds = useQueries({ queries: heldNames.map((name) => queries.stack(name)) });
  const details = useQueries({ queries: names.map((name) => queries.stack(name)) });
  const [cancelled, setCancelled] = useState<{ name: StackName; id: string }>();
  const [unlocked, setUnlocked] = useState<ListedLock>();
  const [isLocking, setLocking] = useState(false);
  const [isHolding, setHolding] = useState(false);
  const [released, setReleased] = useState<StackName>();
  const { may } = useRights(org);
  const login = useLogin();
  const mayCancel = ({ project, stack }: StackName, author: string, tags: Record<string, unknown>) => {
    const unit = { project, name: stack, tags };
    return may("member", unit) || (may("plan", unit) && author === login);
  };
  const mayHold = (one: StackSummary) =>
    may("member", { project: one.projectName, name: one.stackName, tags: one.tags ?? {} });
  const holdable = (stacks.data?.items ?? []).filter((one) => !one.onHold && mayHold(one)).map(nameOf);
  const states = useQuery(queries.states(org)).data?.items ?? [];
  const labels = new Map(states.map((one) => [one.id, one.labels]));
  const held = new Set(locks.data?.items.map((one) => one.stateId));
  const lockable = states.filter(
    ({ id, project, state, labels }) => !held.has(id) && may("member", { project, name: state, tags: labels }),
  );
  const mayUnlock = ({ stateId, project, state, lock }: ListedLock) => {
    const unit = { project, name: state, tags: labels.get(stateId) };
    return may("member", unit) || (may("plan", unit) && lock.principal === login);
  };
  useTitle("Locks", org);
  return (
    <div className="page">
      <h1>Locks</h1>
      <Card title="Updates of stacks" count={running.length}>
        <Loaded of={stacks}>
          {() =>
            running.length === 0 ? (
              <Empty icon="open" title="No update holds a stack" />
            ) : (
              <Table label="Updates that run" head={["Stack", "Update", "Holder", "Since", "Wrote", ""]}>
                {names.map((name, index) => {
                  const stack = details[index]?.data;
                  const operation = stack?.currentOperation;
                  return (
                    <tr key={`${name.project}/${name.stack}`}>
                      <td>
                        <Link className="strong" to="/$org/$project/$stack" params={name}>
                          {name.project}/{name.stack}
                        </Link>
                      </td>
                      <td>
                        <Badge tone="busy" icon="running">
                          {operation ? kind(operation.kind) : "Running"}
                        </Badge>
                      </td>
                      <td>{operation?.author ?? "–"}</td>
                      <td>
                        <Time at={operation?.started} />
                      </td>
                      <td>{operation ? <Wrote wrote={operation.wrote} at={operation.lastWrite} /> : "–"}</td>
                      <td className="actions pinned">
                        {stack?.activeUpdate && operation && mayCancel(name, operation.author, stack.tags) && (
                          <Button
                            className="button small bad"
                            onPress={() => setCancelled({ name, id: stack.activeUpdate })}
                          >
                            Cancel
                          </Button>
                        )}
                      </td>
                    </tr>
                  );
                })}
              </Table>
            )
          }
        </Loaded>
        {running.length > RUNNING_MAX && (
          <Notice>
            Here are the first {RUNNING_MAX} of {number(running.length)} updates that run.
          </Notice>
        )}
      </Card>
      <Card
        title="Stacks on hold"
        count={stacks.data ? onHold.length : undefined}
        actions={
          holdable.length > 0 && (
            <Button className="button small" onPress={() => setHolding(true)}>
              <Icon name="lock" /> Hold a stack
            </Button>
          )
        }
      >
        <Loaded of={stacks}>
          {() =>
            onHold.length === 0 ? (
              <Empty icon="open" title="No stack is held by hand" />
            ) : (
              <Table label="Stacks on hold" head={["Stack", "Reason", "Holder", "Since", ""]}>
                {heldNames.map((name, index) => {
                  const hold = holds[index]?.data?.hold;
                  const one = onHold[index];
                  return (
                    <tr key={`${name.project}/${name.stack}`}>
                      <td>
                        <Link className="strong" to="/$org/$project/$stack" params={name}>
                          {name.project}/{name.stack}
                        </Link>
                      </td>
                      <td className="message">{hold ? visible(hold.reason) : "–"}</td>
                      <td>
                        {hold?.by ?? "–"}
                        {hold && <div className="faint">token {hold.token}</div>}
                      </td>
                      <td>
                        <Time at={hold?.at} />
                      </td>
                      <td className="actions pinned">
                        {one && mayHold(one) && (
                          <Button className="button small" onPress={() => setReleased(name)}>
                            Release
                          </Button>
                        )}
                      </td>
                    </tr>
                  );
                })}
              </Table>
            )
          }
        </Loaded>
        {onHold.length > RUNNING_MAX && (
          <Notice>
            Here are the first {RUNNING_MAX} of {number(onHold.length)} stacks that are held.
          </Notice>
        )}
      </Card>
      <Card
        title="Locks of states"
        count={locks.data?.items.length}
        actions={
          lockable.length > 0 &&
          locks.data && (
            <Button className="button small" onPress={() => setLocking(true)}>
              <Icon name="lock" /> Lock by hand
            </Button>
          )
        }
      >
        <Loaded of={locks}>
          {({ items, more }) =>
            items.length === 0 ? (
              <Empty icon="open" title="No state is locked" />
            ) : (
              <>
                <Table label="Locks of states" head={["State", "Operation", "Holder", "Client", "Since", "Wrote", ""]}>
                  {[...items]
                    .sort((a, b) => instant(a.lock.since) - instant(b.lock.since))
                    .map((one) => (
                      <tr key={one.stateId}>
                        <td>
                          <Link
                            className="strong"
                            to="/$org/-/states/$project/$state"
                            params={{ org, project: one.project, state: one.state }}
                          >
                            {one.project}/{one.state}
                          </Link>
                        </td>
                        <td>
                          <Badge tone="warn" icon="lock">
                            {one.lock.byHand ? "By hand" : visible(one.lock.operation.replace("OperationType", "")) || "Lock"}
                          </Badge>
                          {one.lock.info && <div className="faint message">{visible(one.lock.info)}</div>}
                        </td>
                        <td>
                          {visible(one.lock.who || one.lock.principal)}
                          <div className="faint">
                            {one.lock.principal}, token {one.lock.token}
                          </div>
                        </td>
                        <td>{visible(one.lock.version) || "–"}</td>
                        <td>
                          <Time at={one.lock.since} />
                        </td>
                        <td>
                          <Wrote wrote={one.lock.wrote} />
                        </td>
                        <td className="actions pinned">
                          {mayUnlock(one) && (
                            <Button className="button small bad" onPress={() => setUnlocked(one)}>
                              Unlock
                            </Button>
                          )}
                        </td>
                      </tr>
                    ))}
                </Table>
                {more && <Notice>Here are the first {number(queries.LIST_MAX)} locks.</Notice>}
              </>
            )
          }
        </Loaded>
      </Card>
      {cancelled && <CancelUpdate {...cancelled} onClose={() => setCancelled(undefined)} />}
      {isHolding && <HoldStack of={holdable} onClose={() => setHolding(false)} />}
      {released && <ReleaseStack name={released} onClose={() => setReleased(undefined)} />}
      {isLocking && <LockByHand of={lockable} onClose={() => setLocking(false)} />}
      {unlocked && <Unlock lock={unlocked} onClose={() => setUnlocked(undefined)} />}
    </div>
  );
}
