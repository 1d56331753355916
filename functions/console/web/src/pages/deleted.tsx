// Deleted stacks and states, until the server erases them.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Button } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import { number } from "../format";
import { useRights } from "../rights";
import { Card, Confirm, Empty, Loaded, Notice, Table, Time, useTitle } from "../ui/parts";
import { useOrg } from "./orgparts";

/** What is shown of one, and how it comes back. */
interface Row {
  id: string;
  name: string;
  version: string;
  resources: string;
  deleted: number | string | undefined;
  by: string;
  erased: number | string | undefined;
  mayUndelete: boolean;
  undelete: () => Promise<unknown>;
}

function Kept<T>({
  kind,
  of,
  rowOf,
  question,
  children,
}: {
  kind: "stack" | "state";
  of: { data: { items: T[]; more: boolean } | undefined; error: unknown; refetch: () => unknown };
  rowOf: (item: T) => Row;
  /** What a person has to know before one comes back. */
  question: string;
  children?: ReactNode;
}) {
  const client = useQueryClient();
  const [chosen, choose] = useState<Row>();
  const title = `Deleted ${kind}s`;
  return (
    <Card title={title} count={of.data?.items.length}>
      <Loaded of={of}>
        {({ items, more }) =>
          items.length === 0 ? (
            <Empty icon={kind} title={`No deleted ${kind} is kept`} />
          ) : (
            <>
              <Table label={title} head={[kind === "stack" ? "Stack" : "State", "Resources", "Deleted", "Erased", ""]}>
                {items.map(rowOf).map((row) => (
                  <tr key={row.id}>
                    <td>
                      <span className="strong">{row.name}</span>
                      <div className="faint">{row.version}</div>
                    </td>
                    <td>{row.resources}</td>
                    <td>
                      <Time at={row.deleted} />
                      <div className="faint">by {row.by}</div>
                    </td>
                    <td>
                      <Time at={row.erased} />
                    </td>
                    <td className="actions pinned">
                      {row.mayUndelete && (
                        <Button className="button small" aria-label={`Undelete ${row.name}`} onPress={() => choose(row)}>
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
      {children}
      {chosen && (
        <Confirm
          title={`Undelete ${chosen.name}?`}
          action="Undelete it"
          isDangerous={false}
          onClose={() => choose(undefined)}
          run={async () => {
            await chosen.undelete();
            await client.invalidateQueries();
          }}
        >
          <p>{question}</p>
        </Confirm>
      )}
    </Card>
  );
}

export function Deleted() {
  const org = useOrg();
  const { may } = useRights(org);
  const stacks = useQuery(queries.deletedStacks(org));
  const states = useQuery(queries.deletedStates(org));
  useTitle("Deleted", org);
  return (
    <>
      <h1>Deleted</h1>
      <Kept
        kind="stack"
        of={stacks}
        rowOf={({ id, projectName, stackName, version, lastUpdate, programId, ...stack }) => ({
          id,
          name: `${projectName}/${stackName}`,
          version: version === 0 ? "never updated" : `version ${number(version)}`,
          resources: number(lastUpdate?.resourceCount ?? 0),
          deleted: stack.deletedAt,
          by: stack.deletedBy,
          erased: stack.until,
          mayUndelete: stack.mayUndelete,
          undelete: () =>
            change("POST", "/api/orgs/{orgName}/restore-stack/{programID}", { orgName: org, programID: programId }, { stackName }),
        })}
        question="It returns under its name, with its versions, its secrets and its tags. If another stack has the name now, the server refuses: rename that one first."
      >
        <p className="foot">Undeleting a stack needs the role admin on it.</p>
      </Kept>
      <Kept
        kind="state"
        of={states}
        rowOf={({ id, project, state: name, version, resourceCount, labels, ...state }) => ({
          id,
          name: `${project}/${name}`,
          version: version === 0 ? "never written" : `version ${number(version)}`,
          resources: typeof resourceCount === "number" ? number(resourceCount) : "unknown",
          deleted: state.removed,
          by: state.removedBy,
          erased: state.until,
          mayUndelete: may("member", { project, name, tags: labels }),
          undelete: () => change("POST", "/api/tfstates/{guid}/undelete", { guid: id }),
        })}
        question="It returns under its name, with its versions, its labels and its address. An empty state that has the name now is replaced. Another one stays, and the server refuses."
      />
    </>
  );
}
