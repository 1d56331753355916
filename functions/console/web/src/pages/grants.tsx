// Grants: roles on a part of the organization, and why a person may do something.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { Button } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import type { Grant, NameKind, StackName } from "../api/queries";
import { Badge, Card, Confirm, Empty, Facts, Line, Loaded, Search, Select, Table, useTitle } from "../ui/parts";
import { RoleChoice, SCOPES, useOrg } from "./orgparts";

const ROUTE = "/$org/-/grants";

const KINDS: [string, string][] = [
  ["user", "A member"],
  ["team", "A team"],
  ["token", "A token of the organization"],
  ["everybody", "Everybody in the organization"],
];

function AddGrant({ org, onClose }: { org: string; onClose: () => void }) {
  const client = useQueryClient();
  const [kind, setKind] = useState("user");
  const [whom, setWhom] = useState("");
  const [on, setOn] = useState("");
  const [role, setRole] = useState("apply");
  const members = useQuery(queries.members(org)).data?.members ?? [];
  const teams = useQuery(queries.teams(org)).data?.teams ?? [];
  const offered = { user: members.map(({ user }) => user.githubLogin), team: teams.map(({ name }) => name) };
  const isForAll = kind === "everybody";
  const run = async () => {
    const to = isForAll ? kind : `${kind}:${whom.trim()}`;
    await change("POST", "/api/orgs/{orgName}/grants", { orgName: org }, { to, on: on.trim(), role });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title="Give a role?"
      action="Give the role"
      isDangerous={false}
      isReady={on.trim() !== "" && (isForAll || whom.trim() !== "")}
      onClose={onClose}
      run={run}
    >
      <p>It adds to what they may do already, from now on, and reaches what is created later too.</p>
      <Select label="To" value={kind} onChange={setKind} options={KINDS} />
      {!isForAll && (
        <Line
          label={kind === "user" ? "Login" : "Name"}
          value={whom}
          onChange={setWhom}
          offered={kind === "user" || kind === "team" ? offered[kind] : []}
        />
      )}
      <Line label="On" value={on} onChange={setOn} hint={SCOPES} />
      <RoleChoice org={org} value={role} onChange={setRole} isGrant />
    </Confirm>
  );
}

function RemoveGrant({ org, grant, onClose }: { org: string; grant: Grant; onClose: () => void }) {
  const client = useQueryClient();
  const { to, on, role } = grant;
  const run = async () => {
    await change("DELETE", "/api/orgs/{orgName}/grants", { orgName: org }, undefined, { to, on, role });
    await client.invalidateQueries();
  };
  return (
    <Confirm title="Remove this grant?" action="Remove the grant" onClose={onClose} run={run}>
      <p>
        <strong>{to}</strong> no longer has the role <strong>{role}</strong> on <code>{on}</code>, within a minute. What
        other grants and the role in the organization give stays.
      </p>
    </Confirm>
  );
}

const OF: [NameKind, string][] = [
  ["stack", "Stack"],
  ["tfstate", "State"],
  ["environment", "Environment"],
];

/** A name from `project/name`: of a stack, a state or an environment. */
function stackOf(org: string, text: string): StackName | undefined {
  const [project, stack, ...more] = text.split("/");
  return project && stack && more.length === 0 ? { org, project, stack } : undefined;
}

function Explained({ name, user, kind }: { name: StackName; user: string; kind: NameKind }) {
  const access = useQuery(queries.access(name, user, kind));
  return (
    <Loaded of={access}>
      {({ login, role, roleHere, rights }) => (
        <>
          <div className="pad">
            <Facts
              of={[
                ["Who", login],
                ["Role in the organization", <Badge key="o" tone="plain">{String(role)}</Badge>],
                [`On ${name.project}/${name.stack}`, <Badge key="h" tone="busy">{roleHere}</Badge>],
              ]}
            />
          </div>
          {rights.length === 0 ? (
            <Empty icon="lock" title={`${login} may do nothing with it`} />
          ) : (
            <Table label="Rights" head={["May", "Because of"]}>
              {rights.map(({ right, because }) => (
                <tr key={right}>
                  <td className="strong">{right}</td>
                  <td>
                    <ul className="bare-list">
                      {because.map(({ role, grant }) => (
                        <li key={grant ? `${grant.to} ${grant.on} ${String(grant.role)}` : "own"}>
                          {grant ? (
                            <>
                              the grant of <strong>{String(role)}</strong> to {grant.to} on <code>{grant.on}</code>
                            </>
                          ) : (
                            <>
                              the role <strong>{String(role)}</strong> in the organization
                            </>
                          )}
                        </li>
                      ))}
                    </ul>
                  </td>
                </tr>
              ))}
            </Table>
          )}
        </>
      )}
    </Loaded>
  );
}

/** The names of a kind that the form offers. */
function useNames(org: string, kind: NameKind): string[] {
  const stacks = useQuery({ ...queries.stacks(org), enabled: kind === "stack" }).data?.items ?? [];
  const states = useQuery({ ...queries.states(org), enabled: kind === "tfstate" }).data?.items ?? [];
  const environments = useQuery({ ...queries.environments(org), enabled: kind === "environment" }).data?.items ?? [];
  const names = {
    stack: () => stacks.map((one) => `${one.projectName}/${one.stackName}`),
    tfstate: () => states.map((one) => `${one.project}/${one.state}`),
    environment: () => environments.map((one) => `${one.project}/${one.name}`),
  };
  return names[kind]().slice(0, 200);
}

function Why({ org }: { org: string }) {
  const { user = "", stack = "", kind = "stack" } = useSearch({ from: ROUTE });
  const navigate = useNavigate({ from: ROUTE });
  const [typed, setTyped] = useState<{ user: string; stack: string; kind: NameKind }>({ user, stack, kind });
  useEffect(() => setTyped({ user, stack, kind }), [user, stack, kind]);
  const members = useQuery(queries.members(org)).data?.members ?? [];
  const names = useNames(org, typed.kind);
  const name = stackOf(org, stack);
  const noun = OF.find(([key]) => key === typed.kind)?.[1];
  return (
    <Card title="Why may this person do that?">
      <form
        className="filters bottom"
        onSubmit={(event) => {
          event.preventDefault();
          const search = {
            user: typed.user.trim() || undefined,
            stack: typed.stack.trim() || undefined,
            kind: typed.kind === "stack" ? undefined : typed.kind,
          };
          void navigate({ search: (before) => ({ ...before, ...search }) });
        }}
      >
        <Line
          label="Login"
          value={typed.user}
          onChange={(user) => setTyped({ ...typed, user })}
          offered={members.map(({ user }) => user.githubLogin)}
        />
        <Select
          label="With a"
          value={typed.kind}
          onChange={(kind) => setTyped({ ...typed, kind: OF.find(([key]) => key === kind)?.[0] ?? "stack" })}
          options={OF}
        />
        <Line
          label={`${noun}, as PROJECT/NAME`}
          value={typed.stack}
          onChange={(stack) => setTyped({ ...typed, stack })}
          offered={names}
        />
        <Button className="button" type="submit" isDisabled={!typed.user.trim() || !stackOf(org, typed.stack.trim())}>
          Explain
        </Button>
      </form>
      {name && user !== "" && <Explained name={name} user={user} kind={kind} />}
    </Card>
  );
}

export function Grants() {
  const org = useOrg();
  const grants = useQuery(queries.grants(org));
  const typed = useSearch({ from: ROUTE }).q ?? "";
  const navigate = useNavigate({ from: ROUTE });
  const [isAdding, setAdding] = useState(false);
  const [removed, setRemoved] = useState<Grant>();
  const has = (text: string) => text.toLowerCase().includes(typed.toLowerCase());
  useTitle("Grants", org);
  return (
    <>
      <h1>Grants</h1>
      <Card
        title="Roles on a part of the organization"
        count={grants.data?.grants.length}
        actions={
          // The server lists them only for who may give some.
          grants.data && (
            <Button className="button small primary" onPress={() => setAdding(true)}>
              Give a role
            </Button>
          )
        }
      >
        <Loaded of={grants}>
          {({ grants }) =>
            grants.length === 0 ? (
              <Empty icon="key" title="There are no grants">
                Members have the rights of their role in the organization.
              </Empty>
            ) : (
              <>
                <div className="filters">
                  <Search
                    label="Filter by whom or on what"
                    value={typed}
                    onChange={(q) =>
                      void navigate({ search: (before) => ({ ...before, q: q || undefined }), replace: true })
                    }
                  />
                </div>
                <Table label="Grants" head={["To", "On", "Role", ""]}>
                  {grants
                    .filter(({ to, on, role }) => has(`${to} ${on} ${String(role)}`))
                    .map((grant) => (
                      <tr key={`${grant.to} ${grant.on} ${String(grant.role)}`}>
                        <td className="strong">{grant.to}</td>
                        <td>
                          <code>{grant.on}</code>
                        </td>
                        <td>
                          <Badge tone="plain">{grant.role}</Badge>
                        </td>
                        <td className="actions pinned">
                          <Button
                            className="button small bad"
                            aria-label={`Remove the grant to ${grant.to} on ${grant.on}`}
                            onPress={() => setRemoved(grant)}
                          >
                            Remove
                          </Button>
                        </td>
                      </tr>
                    ))}
                </Table>
              </>
            )
          }
        </Loaded>
      </Card>
      <Why org={org} />
      {isAdding && <AddGrant org={org} onClose={() => setAdding(false)} />}
      {removed && <RemoveGrant org={org} grant={removed} onClose={() => setRemoved(undefined)} />}
    </>
  );
}
