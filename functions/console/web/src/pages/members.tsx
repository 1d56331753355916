// The members of an organization: who they are, and what they may do in all of it.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import type { Member } from "../api/queries";
import { number, visible } from "../format";
import { useIsAdmin, useLogin } from "../rights";
import { Icon } from "../ui/icons";
import { Badge, Card, Confirm, Line, Loaded, Notice, Once, RowMenu, Search, Table, Time, useTitle } from "../ui/parts";
import { RoleChoice, useOrg } from "./orgparts";

/** Members that are drawn, at most. */
const SHOWN = 500;

interface Invitation {
  user: string;
  path: string;
  expires: string;
}

/** What an admin is about to do with a member, or with somebody new. */
type Asked = { what: "invite" | "add" } | { what: "role" | "link" | "sessions" | "remove"; member: Member };

interface OfDialog {
  org: string;
  onClose: () => void;
}

async function invite(org: string, user: string, role: string) {
  const path = "/api/orgs/{orgName}/members/{userLogin}/invitation";
  return (await change("POST", path, { orgName: org, userLogin: user }, { role })) as Invitation;
}

/** Makes somebody a member: a new user with a link for the first sign-in, or a user that the server has. */
function NewMember({
  org,
  isNew,
  onClose,
  onInvited,
}: OfDialog & { isNew: boolean; onInvited: (found: Invitation) => void }) {
  const client = useQueryClient();
  const [login, setLogin] = useState("");
  const [role, setRole] = useState("plan");
  const run = async () => {
    const user = login.trim();
    if (isNew) onInvited(await invite(org, user, role));
    else await change("POST", "/api/orgs/{orgName}/members/{userLogin}", { orgName: org, userLogin: user }, { role });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title={isNew ? `Invite a person to ${org}?` : `Add a user to ${org}?`}
      action={isNew ? "Make the link" : "Add the user"}
      isDangerous={false}
      isReady={login.trim() !== ""}
      onClose={onClose}
      run={run}
    >
      <p>
        {isNew
          ? "If no user has this login, it becomes a user of this server. The user becomes a member. The link signs the person in once."
          : "The user becomes a member. Their sign-in and their tokens work here at once."}
      </p>
      <Line label="Login" value={login} onChange={setLogin} />
      <RoleChoice org={org} value={role} onChange={setRole} />
    </Confirm>
  );
}

function ChangeRole({ org, member, onClose }: OfDialog & { member: Member }) {
  const client = useQueryClient();
  const login = member.user.githubLogin;
  const before = member.fgaRole.name;
  const [role, setRole] = useState<string>(before);
  const run = async () => {
    await change("PATCH", "/api/orgs/{orgName}/members/{userLogin}", { orgName: org, userLogin: login }, { role });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title={`Change the role of ${login}?`}
      action="Change the role"
      isDangerous={false}
      isReady={role !== before}
      onClose={onClose}
      run={run}
    >
      <p>
        The role is for the whole organization, and grants add to it. It holds within a minute. An update that it no
        longer allows ends within five minutes; what it saved is kept.
      </p>
      <RoleChoice org={org} value={role} onChange={setRole} />
    </Confirm>
  );
}

function NewLink({ org, member, onClose, onInvited }: OfDialog & { member: Member; onInvited: (found: Invitation) => void }) {
  const login = member.user.githubLogin;
  return (
    <Confirm
      title={`Make a link for ${login}?`}
      action="Make the link"
      isDangerous={false}
      onClose={onClose}
      run={async () => onInvited(await invite(org, login, member.fgaRole.name))}
    >
      <p>
        Who opens it signs in as {login}, once, and can set a new password. An earlier link of {login} stops working.
      </p>
    </Confirm>
  );
}

function EndSessions({ org, member, onClose }: OfDialog & { member: Member }) {
  const client = useQueryClient();
  const login = member.user.githubLogin;
  const sessions = useQuery(queries.sessionsOf(org, login));
  const found = sessions.data?.sessions ?? [];
  const run = async () => {
    await change("DELETE", "/api/orgs/{orgName}/members/{userLogin}/sessions", { orgName: org, userLogin: login });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title={`Sign ${login} out everywhere?`}
      action="Sign out everywhere"
      isReady={found.length > 0}
      onClose={onClose}
      run={run}
    >
      <p>Browsers lose the sign-in within a minute. Access tokens keep working.</p>
      <Loaded of={sessions} rows={1}>
        {() =>
          found.length === 0 ? (
            <p className="faint">{login} is signed in with no browser.</p>
          ) : (
            <ul className="plain-list framed">
              {found.map((session) => (
                <li key={session.id} className="list-row">
                  <span className="message">{visible(session.browser) || "Unknown browser"}</span>
                  <span className="end faint">
                    <Time at={session.signedIn} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Confirm>
  );
}

function Remove({ org, member, onClose }: OfDialog & { member: Member }) {
  const client = useQueryClient();
  const login = member.user.githubLogin;
  const run = async () => {
    await change("DELETE", "/api/orgs/{orgName}/members/{userLogin}", { orgName: org, userLogin: login });
    await client.invalidateQueries();
  };
  return (
    <Confirm title={`Remove ${login} from ${org}?`} action="Remove the member" onClose={onClose} run={run}>
      <p>
        {login} loses the role, all places in teams and all grants, within a minute. An update of {login} that runs ends
        within five minutes; what it saved is kept. A lock of {login} stays until somebody breaks it.
      </p>
      <p>
        The user stays on this server, and their sign-ins and tokens show nothing of {org} any more. Tokens of {org} and
        its teams that {login} made keep working: revoke those that {login} may know. Nothing is deleted.
      </p>
    </Confirm>
  );
}

export function Members() {
  const org = useOrg();
  const members = useQuery(queries.members(org));
  const isAdmin = useIsAdmin(org);
  const own = useLogin();
  const typed = useSearch({ from: "/$org/-/members" }).q ?? "";
  const navigate = useNavigate({ from: "/$org/-/members" });
  const [asked, ask] = useState<Asked>();
  const [invited, setInvited] = useState<Invitation>();
  useTitle("Members", org);
  const close = () => ask(undefined);
  const actions = (member: Member): [string, () => void][] => {
    const login = member.user.githubLogin;
    const isOther = login !== own;
    return [
      ["Role", () => ask({ what: "role", member })],
      ...(isOther ? ([["Invitation link", () => ask({ what: "link", member })]] as [string, () => void][]) : []),
      ["Access tokens", () => void navigate({ to: "/$org/-/tokens", params: { org }, search: { of: `user:${login}` } })],
      ["Sign out everywhere", () => ask({ what: "sessions", member })],
      ...(isOther ? ([["Remove", () => ask({ what: "remove", member })]] as [string, () => void][]) : []),
    ];
  };
  return (
    <>
      <h1>Members</h1>
      <Card
        title="Everybody in this organization"
        count={members.data?.members.length}
        actions={
          isAdmin && (
            <>
              <Button className="button small" onPress={() => ask({ what: "add" })}>
                Add a user
              </Button>
              <Button className="button small primary" onPress={() => ask({ what: "invite" })}>
                Invite
              </Button>
            </>
          )
        }
      >
        <div className="filters">
          <Search
            label="Filter by name"
            value={typed}
            onChange={(q) => void navigate({ search: { q: q || undefined }, replace: true })}
          />
        </div>
        <Loaded of={members}>
          {({ members }) => {
            const found = members.filter(({ user }) => user.githubLogin.toLowerCase().includes(typed.toLowerCase()));
            return (
              <>
                <Table label="Members" head={["Login", "Role", ...(isAdmin ? [""] : [])]}>
                  {found.slice(0, SHOWN).map((member) => (
                    <tr key={member.user.githubLogin}>
                      <td className="strong">
                        <Icon name="person" /> {member.user.githubLogin}
                      </td>
                      <td>
                        <Badge tone={member.fgaRole.name === "admin" ? "busy" : "plain"}>{member.fgaRole.name}</Badge>
                      </td>
                      {isAdmin && (
                        <td className="actions pinned">
                          <RowMenu of={member.user.githubLogin} actions={actions(member)} />
                        </td>
                      )}
                    </tr>
                  ))}
                </Table>
                {found.length > SHOWN && (
                  <Notice>
                    Here are {number(SHOWN)} of {number(found.length)}. Filter by name to see the others.
                  </Notice>
                )}
              </>
            );
          }}
        </Loaded>
        {!isAdmin && <p className="foot">Admins of {org} invite people and change roles.</p>}
      </Card>
      {(asked?.what === "invite" || asked?.what === "add") && (
        <NewMember org={org} isNew={asked.what === "invite"} onClose={close} onInvited={setInvited} />
      )}
      {asked?.what === "role" && <ChangeRole org={org} member={asked.member} onClose={close} />}
      {asked?.what === "link" && <NewLink org={org} member={asked.member} onClose={close} onInvited={setInvited} />}
      {asked?.what === "sessions" && <EndSessions org={org} member={asked.member} onClose={close} />}
      {asked?.what === "remove" && <Remove org={org} member={asked.member} onClose={close} />}
      {invited && (
        <Once
          title={`The link for ${invited.user}`}
          text={window.location.origin + invited.path}
          label="the link"
          onClose={() => setInvited(undefined)}
        >
          <p>
            Give it to {invited.user} alone: it signs in once. It ends <Time at={invited.expires} />, and
            is not shown again.
          </p>
        </Once>
      )}
    </>
  );
}
