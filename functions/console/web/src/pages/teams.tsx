// The teams of an organization, and who is in them.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button, Disclosure, DisclosurePanel, Heading } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import { visible } from "../format";
import { useIsAdmin } from "../rights";
import { Icon } from "../ui/icons";
import { Card, Confirm, Empty, Line, Loaded, RowMenu, useTitle } from "../ui/parts";
import { useOrg } from "./orgparts";

type Action = "add" | "remove" | "promote" | "demote";

const ASKS: Record<Action, (login: string, team: string) => [string, string, string]> = {
  add: (_, team) => [`Add a member to ${team}?`, "Add", "The member gets everything that grants give to the team, at once."],
  remove: (login, team) => [
    `Remove ${login} from ${team}?`,
    "Remove",
    `${login} loses what grants give to the team, and stays a member of the organization.`,
  ],
  promote: (login, team) => [
    `Make ${login} an admin of ${team}?`,
    "Make an admin",
    `${login} can then add and remove members of the team, and manage its tokens.`,
  ],
  demote: (login, team) => [
    `Make ${login} a member of ${team} again?`,
    "Make a member",
    `${login} stays in the team, and can no longer change it.`,
  ],
};

function ChangeMember({
  org,
  team,
  action,
  member,
  isIn = [],
  onClose,
}: {
  org: string;
  team: string;
  action: Action;
  member?: string;
  /** Who is in the team already. */
  isIn?: string[];
  onClose: () => void;
}) {
  const client = useQueryClient();
  const [typed, setTyped] = useState("");
  const all = useQuery(queries.members(org)).data?.members ?? [];
  const login = member ?? typed.trim();
  const [title, button, text] = ASKS[action](login, team);
  const run = async () => {
    const names = { orgName: org, teamName: team };
    await change("PATCH", "/api/orgs/{orgName}/teams/{teamName}", names, { memberAction: action, member: login });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title={title}
      action={button}
      isDangerous={action === "remove"}
      isReady={login !== ""}
      onClose={onClose}
      run={run}
    >
      <p>{text}</p>
      {member === undefined && (
        <Line
          label="Login"
          value={typed}
          onChange={setTyped}
          offered={all.map(({ user }) => user.githubLogin).filter((one) => !isIn.includes(one))}
        />
      )}
    </Confirm>
  );
}

function DeleteTeam({ org, team, onClose }: { org: string; team: string; onClose: () => void }) {
  const client = useQueryClient();
  const run = async () => {
    await change("DELETE", "/api/orgs/{orgName}/teams/{teamName}", { orgName: org, teamName: team });
    // Not the team itself, which is still on the page.
    await client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "team" || queryKey[2] !== team });
  };
  return (
    <Confirm title={`Delete the team ${team}?`} action="Delete the team" onClose={onClose} run={run}>
      <p>
        Its tokens and its grants end with it, so its members lose what it gave them, and pipelines with its tokens stop.
        They stay members of the organization.
      </p>
    </Confirm>
  );
}

function NewTeam({ org, onClose }: { org: string; onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [displayName, setDisplayName] = useState("");
  const [description, setDescription] = useState("");
  const run = async () => {
    const team = { name: name.trim(), displayName: displayName.trim() || undefined, description: description.trim() };
    await change("POST", "/api/orgs/{orgName}/teams/pulumi", { orgName: org }, team);
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title="Create a team?"
      action="Create the team"
      isDangerous={false}
      isReady={name.trim() !== ""}
      onClose={onClose}
      run={run}
    >
      <p>A team has no rights until a grant gives it some.</p>
      <Line label="Name" value={name} onChange={setName} />
      <Line label="Name for people, if another" value={displayName} onChange={setDisplayName} />
      <Line label="Description" value={description} onChange={setDescription} />
    </Confirm>
  );
}

function Team({ org, name, title, isAdmin }: { org: string; name: string; title: string; isAdmin: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const [asked, ask] = useState<{ action: Action; member?: string } | "delete">();
  const team = useQuery({ ...queries.team(org, name), enabled: isOpen });
  const isTeamAdmin = isAdmin || team.data?.userRole === "admin";
  const close = () => ask(undefined);
  const actions = (member: string, role: string | undefined): [string, () => void][] => [
    role === "admin"
      ? ["Make a member", () => ask({ action: "demote", member })]
      : ["Make an admin", () => ask({ action: "promote", member })],
    ["Remove", () => ask({ action: "remove", member })],
  ];
  return (
    <Disclosure className="step" isExpanded={isOpen} onExpandedChange={setOpen}>
      <Heading level={3} className="bare">
        <Button slot="trigger" className="step-head">
          <Icon name={isOpen ? "down" : "right"} />
          <span className="strong">{visible(title || name)}</span>
          {title !== "" && title !== name && <span className="faint">{name}</span>}
        </Button>
      </Heading>
      <DisclosurePanel>
        <div className="step-body">
          <Loaded of={team}>
            {({ description, members, stacks }) => (
              <>
                {description && <p>{visible(description)}</p>}
                {members && members.length > 0 ? (
                  <ul className="plain-list">
                    {members.map((one) => (
                      <li key={one.githubLogin} className="list-row">
                        <Icon name="person" />
                        <span>{one.githubLogin}</span>
                        <span className="faint">{one.role}</span>
                        {isTeamAdmin && (
                          <span className="end">
                            <RowMenu of={one.githubLogin} actions={actions(one.githubLogin, one.role)} />
                          </span>
                        )}
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
                {isTeamAdmin && (
                  <div className="row">
                    <Button className="button small" onPress={() => ask({ action: "add" })}>
                      Add a member
                    </Button>
                    <Link className="button small" to="/$org/-/tokens" params={{ org }} search={{ of: `team:${name}` }}>
                      Its tokens
                    </Link>
                    {isAdmin && (
                      <>
                        <Link className="button small" to="/$org/-/grants" params={{ org }} search={{ q: `team:${name}` }}>
                          Its grants
                        </Link>
                        <Button className="button small bad" onPress={() => ask("delete")}>
                          Delete the team
                        </Button>
                      </>
                    )}
                  </div>
                )}
              </>
            )}
          </Loaded>
        </div>
      </DisclosurePanel>
      {asked === "delete" && <DeleteTeam org={org} team={name} onClose={close} />}
      {asked !== undefined && asked !== "delete" && (
        <ChangeMember
          org={org}
          team={name}
          {...asked}
          isIn={team.data?.members?.map((one) => one.githubLogin)}
          onClose={close}
        />
      )}
    </Disclosure>
  );
}

export function Teams() {
  const org = useOrg();
  const teams = useQuery(queries.teams(org));
  const isAdmin = useIsAdmin(org);
  const [isCreating, setCreating] = useState(false);
  useTitle("Teams", org);
  return (
    <>
      <h1>Teams</h1>
      <Card
        title="Teams"
        count={teams.data?.teams.length}
        actions={
          isAdmin && (
            <Button className="button small primary" onPress={() => setCreating(true)}>
              Create a team
            </Button>
          )
        }
      >
        <Loaded of={teams}>
          {({ teams }) =>
            teams.length === 0 ? (
              <Empty icon="person" title="There are no teams">
                A team has the rights that grants give it, and so do its members.
              </Empty>
            ) : (
              <div className="steps">
                {teams.map(({ name, displayName }) => (
                  <Team key={name} org={org} name={name} title={displayName} isAdmin={isAdmin} />
                ))}
              </div>
            )
          }
        </Loaded>
        {!isAdmin && <p className="foot">Admins of {org} create teams. Admins of a team choose its members.</p>}
      </Card>
      {isCreating && <NewTeam org={org} onClose={() => setCreating(false)} />}
    </>
  );
}
