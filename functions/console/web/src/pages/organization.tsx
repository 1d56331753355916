// The organization: members, teams, grants, tokens, and its audit trail. To read; changes are made by the command line.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Outlet, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { Button, Disclosure, DisclosurePanel, Heading } from "react-aria-components";
import { address, download } from "../api/client";
import * as queries from "../api/queries";
import { count } from "../format";
import { Icon } from "../ui/icons";
import { Badge, Card, Empty, Failure, Loaded, More, Search, Select, Table, Time, useTitle } from "../ui/parts";

const useOrg = () => useParams({ from: "/$org/-" }).org;

export function Organization() {
  return (
    <div className="page">
      <Outlet />
    </div>
  );
}

/** What the command line is for, on each of these pages. */
function How({ command }: { command: string }) {
  return (
    <p className="foot">
      To change it: <code>{command}</code>
    </p>
  );
}

/** A filter that the address has. */
function useFilter(from: "/$org/-/members" | "/$org/-/grants") {
  const typed = useSearch({ from }).q ?? "";
  const navigate = useNavigate({ from });
  const setTyped = (q: string) => void navigate({ search: { q: q || undefined }, replace: true });
  const has = (text: string) => text.toLowerCase().includes(typed.toLowerCase());
  return { typed, setTyped, has };
}

export function Members() {
  const org = useOrg();
  const members = useQuery(queries.members(org));
  const { typed, setTyped, has } = useFilter("/$org/-/members");
  useTitle("Members", org);
  return (
    <>
      <h1>Members</h1>
      <Card title="Everybody in this organization" count={members.data?.members.length}>
        <div className="filters">
          <Search label="Filter by name" value={typed} onChange={setTyped} />
        </div>
        <Loaded of={members}>
          {({ members }) => (
            <Table label="Members" head={["Login", "Role"]}>
              {members
                .filter(({ user }) => has(user.githubLogin))
                .slice(0, 500)
                .map(({ user, fgaRole }) => (
                  <tr key={user.githubLogin}>
                    <td className="strong">
                      <Icon name="person" /> {user.githubLogin}
                    </td>
                    <td>
                      <Badge tone={fgaRole.name === "admin" ? "busy" : "plain"}>{fgaRole.name}</Badge>
                    </td>
                  </tr>
                ))}
            </Table>
          )}
        </Loaded>
        <How command="pulumi org member edit" />
      </Card>
    </>
  );
}

function Team({ org, name, title }: { org: string; name: string; title: string }) {
  const [isOpen, setOpen] = useState(false);
  const team = useQuery({ ...queries.team(org, name), enabled: isOpen });
  return (
    <Disclosure className="step" isExpanded={isOpen} onExpandedChange={setOpen}>
      <Heading level={3} className="bare">
        <Button slot="trigger" className="step-head">
          <Icon name={isOpen ? "down" : "right"} />
          <span className="strong">{title || name}</span>
          {title !== "" && title !== name && <span className="faint">{name}</span>}
        </Button>
      </Heading>
      <DisclosurePanel>
        <div className="step-body">
          <Loaded of={team}>
            {({ description, members, stacks }) => (
              <>
                {description && <p>{description}</p>}
                {members && members.length > 0 ? (
                  <ul className="plain-list">
                    {members.map((one) => (
                      <li key={one.githubLogin} className="list-row">
                        <Icon name="person" />
                        <span>{one.githubLogin}</span>
                        <span className="end faint">{one.role}</span>
                      </li>
                    ))}
                  </ul>
                ) : (
                  <p className="none">It has no members.</p>
                )}
                {stacks && stacks.length > 0 && (
                  <p className="faint">
                    May use{" "}
                    {stacks
                      .slice(0, 20)
                      .map((one) => `${one.projectName}/${one.stackName}`)
                      .join(", ")}
                  </p>
                )}
              </>
            )}
          </Loaded>
        </div>
      </DisclosurePanel>
    </Disclosure>
  );
}

export function Teams() {
  const org = useOrg();
  const teams = useQuery(queries.teams(org));
  useTitle("Teams", org);
  return (
    <>
      <h1>Teams</h1>
      <Card title="Teams" count={teams.data?.teams.length}>
        <Loaded of={teams}>
          {({ teams }) =>
            teams.length === 0 ? (
              <Empty icon="person" title="There are no teams" />
            ) : (
              <div className="steps">
                {teams.map(({ name, displayName }) => (
                  <Team key={name} org={org} name={name} title={displayName} />
                ))}
              </div>
            )
          }
        </Loaded>
        <How command="statewright team" />
      </Card>
    </>
  );
}

export function Grants() {
  const org = useOrg();
  const grants = useQuery(queries.grants(org));
  const { typed, setTyped, has } = useFilter("/$org/-/grants");
  useTitle("Grants", org);
  return (
    <>
      <h1>Grants</h1>
      <Card title="Roles on a part of the organization" count={grants.data?.grants.length}>
        <Loaded of={grants}>
          {({ grants }) =>
            grants.length === 0 ? (
              <Empty icon="key" title="There are no grants">
                Members have the rights of their role in the organization.
              </Empty>
            ) : (
              <>
                <div className="filters">
                  <Search label="Filter by whom or on what" value={typed} onChange={setTyped} />
                </div>
                <Table label="Grants" head={["To", "On", "Role"]}>
                  {grants
                    .filter(({ to, on, role }) => has(`${to} ${on} ${role}`))
                    .map(({ to, on, role }) => (
                      <tr key={`${to} ${on} ${role}`}>
                        <td className="strong">{to}</td>
                        <td>
                          <code>{on}</code>
                        </td>
                        <td>
                          <Badge tone="plain">{role}</Badge>
                        </td>
                      </tr>
                    ))}
                </Table>
              </>
            )
          }
        </Loaded>
        <How command="statewright access" />
      </Card>
    </>
  );
}

export function Tokens() {
  const org = useOrg();
  const tokens = useInfiniteQuery(queries.tokens(org));
  const all = tokens.data?.pages.flatMap((page) => page.tokens) ?? [];
  useTitle("Tokens", org);
  return (
    <>
      <h1>Tokens</h1>
      <Card
        title="Tokens of the organization"
        actions={
          <a className="button small" href="/user/settings/tokens">
            Your own tokens
          </a>
        }
      >
        <Loaded of={tokens}>
          {() =>
            all.length === 0 ? (
              <Empty icon="key" title="The organization has no tokens" />
            ) : (
              <Table label="Tokens" head={["Name", "Role", "Created", "Expires"]}>
                {all.map((token) => (
                  <tr key={token.id}>
                    <td>
                      <span className="strong">{token.name}</span>
                      {token.description && <div className="faint message">{token.description}</div>}
                    </td>
                    <td>
                      <Badge tone={token.admin ? "busy" : "plain"}>{token.role?.name ?? "member"}</Badge>
                    </td>
                    <td>
                      <Time at={token.created} />
                      {token.createdBy && <div className="faint">by {token.createdBy}</div>}
                    </td>
                    <td>{token.expires === 0 ? "never" : <Time at={token.expires} />}</td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
        {tokens.hasNextPage && <More isLoading={tokens.isFetchingNextPage} onPress={() => void tokens.fetchNextPage()} />}
        <How command="statewright token" />
      </Card>
    </>
  );
}

export function Audit() {
  const org = useOrg();
  const search = useSearch({ from: "/$org/-/audit" });
  const navigate = useNavigate({ from: "/$org/-/audit" });
  const log = useInfiniteQuery(queries.audit(org, search));
  const types = useQuery(queries.eventTypes(org));
  const [typed, setTyped] = useState(search.user ?? "");
  const [error, setError] = useState<unknown>();
  const all = useMemo(() => log.data?.pages.flatMap((page) => page.auditLogEvents) ?? [], [log.data]);
  useTitle("Audit trail", org);
  // The server looks for whole logins, so it is asked when the person stops typing.
  useEffect(() => {
    if (typed === (search.user ?? "")) return;
    const timer = setTimeout(
      () => void navigate({ search: (before) => ({ ...before, user: typed || undefined }), replace: true }),
      500,
    );
    return () => clearTimeout(timer);
  }, [typed, search.user, navigate]);
  const save = () => {
    setError(undefined);
    const query = Object.entries(queries.auditQuery(search)).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    );
    const url = address("/api/orgs/{orgName}/auditlogs/v2/export", { orgName: org });
    const all = new URLSearchParams([...query, ["format", "csv"]] as string[][]);
    download(`${url}?${all.toString()}`, `${org}-audit.csv`).catch(setError);
  };
  return (
    <>
      <h1>Audit trail</h1>
      <Card
        title="Who did what, newest first"
        actions={
          <Button className="button small" onPress={save}>
            <Icon name="download" /> CSV
          </Button>
        }
      >
        <div className="filters">
          <Search label="Login" value={typed} onChange={setTyped} placeholder="Login, complete" />
          <Select
            label="Action"
            value={search.event ?? ""}
            onChange={(event) =>
              void navigate({ search: (before) => ({ ...before, event: event || undefined }), replace: true })
            }
            options={[
              ["", "All"],
              ...(types.data?.eventTypes ?? []).map(({ event, displayName }): [string, string] => [event, displayName]),
            ]}
          />
        </div>
        {error !== undefined && <Failure error={error} />}
        <Loaded of={log} rows={8}>
          {() =>
            all.length === 0 ? (
              <Empty icon="eye" title="No record matches" />
            ) : (
              <Table label="Audit trail" head={["When", "Who", "Action", "What", "From"]}>
                {all.map((record, index) => (
                  <tr key={index}>
                    <td>
                      <Time at={record.timestamp} />
                    </td>
                    <td>
                      <span className="strong">{record.user.name}</span>
                      {record.tokenName && <div className="faint">{record.tokenName}</div>}
                    </td>
                    <td>
                      <code>{record.event}</code> {record.authFailure && <Badge tone="bad">refused</Badge>}
                    </td>
                    <td className="what">{record.description}</td>
                    <td className="faint">{record.sourceIP || "–"}</td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
        {log.hasNextPage && <More isLoading={log.isFetchingNextPage} onPress={() => void log.fetchNextPage()} />}
        {all.length > 0 && <p className="foot">{count(all.length, "record")} shown.</p>}
      </Card>
    </>
  );
}
