// Deleted stacks and states, until the server erases them.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import { number } from "../format";
import { useRights } from "../rights";
import { Card, Confirm, Empty, Loaded, Notice, Table, Time, useTitle } from "../ui/parts";
import { useOrg } from "./orgparts";

type DeletedState = queries.DeletedState;
type DeletedStack = queries.DeletedStack;

function Undelete({ state, onClose }: { state: DeletedState; onClose: () => void }) {
  const client = useQueryClient();
  const name = `${state.project}/${state.state}`;
  const run = async () => {
    await change("POST", "/api/tfstates/{guid}/undelete", { guid: state.id });
    await client.invalidateQueries();
  };
  return (
    <Confirm title={`Undelete ${name}?`} action="Undelete it" isDangerous={false} onClose={onClose} run={run}>
      <p>
        It returns under its name, with its versions, its labels and its address. An empty state that has the name now is
        replaced. Another one stays, and the server refuses.
      </p>
    </Confirm>
  );
}

function UndeleteStack({ org, stack, onClose }: { org: string; stack: DeletedStack; onClose: () => void }) {
  const client = useQueryClient();
  const name = `${stack.projectName}/${stack.stackName}`;
  const run = async () => {
    const names = { orgName: org, programID: stack.programId };
    await change("POST", "/api/orgs/{orgName}/restore-stack/{programID}", names, { stackName: stack.stackName });
    await client.invalidateQueries();
  };
  return (
    <Confirm title={`Undelete ${name}?`} action="Undelete it" isDangerous={false} onClose={onClose} run={run}>
      <p>
        It returns under its name, with its versions, its secrets and its tags. If another stack has the name now, the
        server refuses: rename that one first.
      </p>
    </Confirm>
  );
}

function Stacks({ org }: { org: string }) {
  const stacks = useQuery(queries.deletedStacks(org));
  const [undeleted, setUndeleted] = useState<DeletedStack>();
  return (
    <Card title="Deleted stacks" count={stacks.data?.items.length}>
      <Loaded of={stacks}>
        {({ items, more }) =>
          items.length === 0 ? (
            <Empty icon="stack" title="No deleted stack is kept" />
          ) : (
            <>
              <Table label="Deleted stacks" head={["Stack", "Resources", "Deleted", "Erased", ""]}>
                {items.map((stack) => (
                  <tr key={stack.id}>
                    <td>
                      <span className="strong">
                        {stack.projectName}/{stack.stackName}
                      </span>
                      <div className="faint">
                        {stack.version === 0 ? "never updated" : `version ${number(stack.version)}`}
                      </div>
                    </td>
                    <td>{number(stack.lastUpdate?.resourceCount ?? 0)}</td>
                    <td>
                      <Time at={stack.deletedAt} />
                      <div className="faint">by {stack.deletedBy}</div>
                    </td>
                    <td>
                      <Time at={stack.until} />
                    </td>
                    <td className="actions pinned">
                      {stack.mayUndelete && (
                        <Button
                          className="button small"
                          aria-label={`Undelete ${stack.projectName}/${stack.stackName}`}
                          onPress={() => setUndeleted(stack)}
                        >
                          Undelete
                        </Button>
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
              {more && <Notice>Here are the first {number(queries.LIST_MAX)}, by name.</Notice>}
            </>
          )
        }
      </Loaded>
      <p className="foot">Undeleting a stack needs the role admin on it.</p>
      {undeleted && <UndeleteStack org={org} stack={undeleted} onClose={() => setUndeleted(undefined)} />}
    </Card>
  );
}

export function Deleted() {
  const org = useOrg();
  const { may } = useRights(org);
  const states = useQuery(queries.deletedStates(org));
  const [undeleted, setUndeleted] = useState<DeletedState>();
  useTitle("Deleted", org);
  return (
    <>
      <h1>Deleted</h1>
      <Stacks org={org} />
      <Card title="Deleted states" count={states.data?.items.length}>
        <Loaded of={states}>
          {({ items, more }) =>
            items.length === 0 ? (
              <Empty icon="state" title="No deleted state is kept" />
            ) : (
              <>
                <Table label="Deleted states" head={["State", "Resources", "Deleted", "Erased", ""]}>
                  {items.map((state) => (
                    <tr key={state.id}>
                      <td>
                        <span className="strong">
                          {state.project}/{state.state}
                        </span>
                        <div className="faint">
                          {state.version === 0 ? "never written" : `version ${number(state.version)}`}
                        </div>
                      </td>
                      <td>{typeof state.resourceCount === "number" ? number(state.resourceCount) : "unknown"}</td>
                      <td>
                        <Time at={state.removed} />
                        <div className="faint">by {state.removedBy}</div>
                      </td>
                      <td>
                        <Time at={state.until} />
                      </td>
                      <td className="actions pinned">
                        {may("member", { project: state.project, name: state.state, tags: state.labels }) && (
                          <Button
                            className="button small"
                            aria-label={`Undelete ${state.project}/${state.state}`}
                            onPress={() => setUndeleted(state)}
                          >
                            Undelete
                          </Button>
                        )}
                      </td>
                    </tr>
                  ))}
                </Table>
                {more && <Notice>Here are the first {number(queries.LIST_MAX)}, by name.</Notice>}
              </>
            )
          }
        </Loaded>
      </Card>
      {undeleted && <Undelete state={undeleted} onClose={() => setUndeleted(undefined)} />}
    </>
  );
}
