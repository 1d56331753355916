// Access tokens: those of the organization, of a team, and the person's own.

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import type { Token, TokenOwner } from "../api/queries";
import { visible } from "../format";
import { useIsAdmin } from "../rights";
import { Badge, Card, Confirm, Empty, Line, Loaded, More, Once, RowMenu, Select, Table, Time, useTitle } from "../ui/parts";
import { RoleChoice, SCOPES, useOrg } from "./orgparts";

const DAY = 24 * 3600;

const EXPIRES: [string, string][] = [
  [String(8 * 3600), "In 8 hours"],
  [String(7 * DAY), "In 7 days"],
  [String(30 * DAY), "In 30 days"],
  [String(90 * DAY), "In 90 days"],
  [String(365 * DAY), "In a year"],
  ["0", "Never"],
];

const GRACES: [string, string][] = [
  ["0", "At once"],
  ["3600", "In an hour"],
  [String(DAY), "In a day"],
  [String(7 * DAY), "In 7 days"],
];

const ROWS = {
  organization: "/api/orgs/{orgName}/tokens",
  personal: "/api/user/tokens",
  team: "/api/orgs/{orgName}/teams/{teamName}/tokens",
  member: "/api/orgs/{orgName}/members/{userLogin}/tokens",
} as const;

/** The owner that an address names. */
function ownerOf(org: string, text: string): TokenOwner {
  const [kind, name] = text.split(":");
  if (kind === "team" && name) return { org, kind, team: name };
  if (kind === "user" && name) return { org, kind: "member", user: name };
  return { org, kind: kind === "organization" ? kind : "personal" };
}

function whose(owner: TokenOwner): string {
  switch (owner.kind) {
    case "organization":
      return `the organization ${owner.org}`;
    case "team":
      return `the team ${owner.team}`;
    case "member":
      return owner.user;
    default:
      return "you";
  }
}

/** The parameters of the rows of an owner. Each row has its own, which the union of their types does not tell. */
function namesOf(owner: TokenOwner, tokenId?: string): never {
  const id = tokenId === undefined ? {} : { tokenId };
  if (owner.kind === "personal") return id as never;
  const more = owner.kind === "team" ? { teamName: owner.team } : owner.kind === "member" ? { userLogin: owner.user } : {};
  return { orgName: owner.org, ...more, ...id } as never;
}

interface Secret {
  name: string;
  tokenValue: string;
}

interface OfDialog {
  owner: TokenOwner;
  onClose: () => void;
}

function CreateToken({ owner, onClose, onMade }: OfDialog & { onMade: (secret: Secret) => void }) {
  const client = useQueryClient();
  const isPersonal = owner.kind === "personal";
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [role, setRole] = useState(isPersonal ? "" : "apply");
  const [on, setOn] = useState("");
  const [seconds, setSeconds] = useState(String(90 * DAY));
  const [isHereOnly, setHereOnly] = useState(true);
  const run = async () => {
    const expires = seconds === "0" ? 0 : Math.floor(Date.now() / 1000) + Number(seconds);
    const token = {
      name: name.trim(),
      description: description.trim(),
      expires,
      on: on.trim() || undefined,
      ...(owner.kind === "team" ? {} : { roleID: role || undefined }),
      ...(isPersonal && isHereOnly ? { organization: owner.org } : {}),
    };
    const made = (await change("POST", ROWS[owner.kind], namesOf(owner), token)) as { tokenValue: string };
    onMade({ name: token.name, tokenValue: made.tokenValue });
    await client.invalidateQueries({ queryKey: ["tokens"] });
  };
  return (
    <Confirm
      title={isPersonal ? "Create a token of your own?" : `Create a token of ${whose(owner)}?`}
      action="Create the token"
      isDangerous={false}
      isReady={name.trim() !== ""}
      onClose={onClose}
      run={run}
    >
      <p>
        {isPersonal
          ? "Who has it acts as you, as far as its role allows."
          : "Who has it acts as a machine. Its name can be used only once, also after it has ended."}
      </p>
      <Line label="Name" value={name} onChange={setName} />
      <Line label="Description" value={description} onChange={setDescription} />
      {owner.kind === "team" ? (
        <p className="faint">It may do what grants give to the team.</p>
      ) : (
        <RoleChoice
          org={owner.org}
          value={role}
          onChange={setRole}
          isGrant
          none={isPersonal ? ["no limit", "Everything that you may do."] : undefined}
        />
      )}
      <Line
        label="Only on"
        value={on}
        onChange={setOn}
        hint={<>Empty for no limit. Otherwise {SCOPES}.</>}
      />
      {isPersonal && (
        <label className="check">
          <input type="checkbox" checked={isHereOnly} onChange={(event) => setHereOnly(event.target.checked)} />
          Only in the organization {owner.org}
        </label>
      )}
      <Select label="Expires" value={seconds} onChange={setSeconds} options={EXPIRES} />
    </Confirm>
  );
}

function RotateToken({ owner, token, onClose, onMade }: OfDialog & { token: Token; onMade: (secret: Secret) => void }) {
  const client = useQueryClient();
  const [grace, setGrace] = useState(String(DAY));
  const run = async () => {
    if (owner.kind === "member") return;
    const path = `${ROWS[owner.kind]}/{tokenId}/rotate` as const;
    const made = (await change("POST", path, namesOf(owner, token.id), { graceSeconds: Number(grace) })) as {
      tokenValue: string;
    };
    onMade({ name: token.name, tokenValue: made.tokenValue });
    await client.invalidateQueries({ queryKey: ["tokens"] });
  };
  return (
    <Confirm
      title={`Make a new secret for ${token.name}?`}
      action="Rotate it"
      isDangerous={grace === "0"}
      onClose={onClose}
      run={run}
    >
      <p>The token keeps its name, its role and its expiry. The old secret works until the time that you choose.</p>
      <Select label="The old secret ends" value={grace} onChange={setGrace} options={GRACES} />
    </Confirm>
  );
}

function RevokeToken({ owner, token, onClose }: OfDialog & { token: Token }) {
  const client = useQueryClient();
  const run = async () => {
    await change("DELETE", `${ROWS[owner.kind]}/{tokenId}` as const, namesOf(owner, token.id));
    await client.invalidateQueries({ queryKey: ["tokens"] });
  };
  return (
    <Confirm title={`Revoke ${token.name}?`} action="Revoke the token" onClose={onClose} run={run}>
      <p>
        It stops working within a minute, and an update that it runs ends within five. It was last used{" "}
        {token.lastUsed === 0 ? "never, as far as the server knows" : <Time at={token.lastUsed} />}.
      </p>
    </Confirm>
  );
}

export function Tokens() {
  const org = useOrg();
  const isAdmin = useIsAdmin(org);
  const teams = useQuery(queries.teams(org)).data?.teams ?? [];
  const { of } = useSearch({ from: "/$org/-/tokens" });
  const chosen = of ?? (isAdmin ? "organization" : "personal");
  const navigate = useNavigate({ from: "/$org/-/tokens" });
  const owner = ownerOf(org, chosen);
  const isOthers = owner.kind === "member";
  // Not before it is known whose they are.
  const isChosen = !useQuery(queries.members(org)).isPending || of !== undefined;
  const tokens = useInfiniteQuery({ ...queries.tokens(owner), enabled: isChosen });
  const all = tokens.data?.pages.flatMap((page) => page.tokens) ?? [];
  const [asked, ask] = useState<"create" | { what: "rotate" | "revoke"; token: Token }>();
  const [secret, setSecret] = useState<Secret>();
  useTitle("Tokens", org);
  const close = () => ask(undefined);
  const options: [string, string][] = [
    ...(isAdmin || owner.kind === "organization" ? ([["organization", org]] as [string, string][]) : []),
    ["personal", "you"],
    ...teams
      .filter(({ name, userRole }) => isAdmin || userRole === "admin" || chosen === `team:${name}`)
      .map(({ name }): [string, string] => [`team:${name}`, `the team ${name}`]),
    ...(isOthers ? ([[chosen, owner.user]] as [string, string][]) : []),
  ];
  const actions = (token: Token): [string, () => void][] => [
    ...(isOthers ? [] : ([["Rotate", () => ask({ what: "rotate", token })]] as [string, () => void][])),
    ["Revoke", () => ask({ what: "revoke", token })],
  ];
  return (
    <>
      <h1>Tokens</h1>
      <Card
        title={owner.kind === "personal" ? "Your tokens" : `Tokens of ${whose(owner)}`}
        actions={
          !isOthers &&
          tokens.data && (
            <Button className="button small primary" onPress={() => ask("create")}>
              Create a token
            </Button>
          )
        }
      >
        <div className="filters">
          <Select
            label="Tokens of"
            value={chosen}
            onChange={(of) => void navigate({ search: { of } })}
            options={options}
          />
        </div>
        <Loaded of={tokens}>
          {() =>
            all.length === 0 ? (
              <Empty icon="key" title="There are no tokens" />
            ) : (
              <Table label="Tokens" head={["Name", "Role", "Created", "Last used", "Expires", ""]}>
                {all.map((token) => (
                  <tr key={token.id}>
                    <td>
                      <span className="strong">{token.name}</span>
                      {token.description && <div className="faint message">{visible(token.description)}</div>}
                    </td>
                    <td>
                      <Badge tone={token.admin ? "busy" : "plain"}>
                        {token.role?.name ?? (owner.kind === "team" ? "by grants" : "no limit")}
                      </Badge>
                      {token.on && (
                        <div className="faint">
                          on <code>{token.on}</code>
                        </div>
                      )}
                      {token.organization && <div className="faint">in {token.organization}</div>}
                    </td>
                    <td>
                      <Time at={token.created} />
                      {token.createdBy && <div className="faint">by {token.createdBy}</div>}
                    </td>
                    <td>{token.lastUsed === 0 ? <span className="faint">never</span> : <Time at={token.lastUsed} />}</td>
                    <td>{token.expires === 0 ? "never" : <Time at={token.expires} />}</td>
                    <td className="actions pinned">
                      <RowMenu of={token.name} actions={actions(token)} />
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
        {tokens.hasNextPage && <More isLoading={tokens.isFetchingNextPage} onPress={() => void tokens.fetchNextPage()} />}
        <p className="foot">
          {isOthers
            ? "Here are those that work in this organization alone. To stop all others, remove the member."
            : "The server records at most once an hour that a token was used."}
        </p>
      </Card>
      {asked === "create" && <CreateToken owner={owner} onClose={close} onMade={setSecret} />}
      {asked !== undefined && asked !== "create" && asked.what === "rotate" && (
        <RotateToken owner={owner} token={asked.token} onClose={close} onMade={setSecret} />
      )}
      {asked !== undefined && asked !== "create" && asked.what === "revoke" && (
        <RevokeToken owner={owner} token={asked.token} onClose={close} />
      )}
      {secret && (
        <Once
          title={`The secret of ${secret.name}`}
          text={secret.tokenValue}
          label="the secret"
          onClose={() => setSecret(undefined)}
        >
          <p>Copy it now: the server keeps only a hash, and cannot show it again.</p>
        </Once>
      )}
    </>
  );
}
