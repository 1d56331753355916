// Deleted states, until the server erases them.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import { number } from "../format";
import { Card, Confirm, Empty, Loaded, Table, Time, useTitle } from "../ui/parts";
import { useOrg } from "./orgparts";

type DeletedState = queries.DeletedState;

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

export function Deleted() {
  const org = useOrg();
  const states = useQuery(queries.deletedStates(org));
  const [undeleted, setUndeleted] = useState<DeletedState>();
  useTitle("Deleted", org);
  return (
    <>
      <h1>Deleted</h1>
      <Card title="Deleted states" count={states.data?.states.length}>
        <Loaded of={states}>
          {({ states }) =>
            states.length === 0 ? (
              <Empty icon="state" title="No deleted state is kept" />
            ) : (
              <Table label="Deleted states" head={["State", "Resources", "Deleted", "Erased", ""]}>
                {states.map((state) => (
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
                      <Button
                        className="button small"
                        aria-label={`Undelete ${state.project}/${state.state}`}
                        onPress={() => setUndeleted(state)}
                      >
                        Undelete
                      </Button>
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
        <p className="foot">
          The operator undeletes a stack: <code>statewright stack restore STACK --deleted</code>
        </p>
      </Card>
      {undeleted && <Undelete state={undeleted} onClose={() => setUndeleted(undefined)} />}
    </>
  );
}
