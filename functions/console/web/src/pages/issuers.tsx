// Issuers whose tokens jobs exchange, and which jobs get what.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import type { Issuer, Policy } from "../api/queries";
import { duration, visible } from "../format";
import { useIsAdmin } from "../rights";
import { Badge, Card, Confirm, Empty, Line, Loaded, RowMenu, Select, Table, Time, useTitle } from "../ui/parts";
import { RoleChoice, useOrg } from "./orgparts";

const ISSUERS = "/api/orgs/{orgName}/oidc/issuers";
const ISSUER = "/api/orgs/{orgName}/oidc/issuers/{issuerId}";
const POLICIES = "/api/orgs/{orgName}/auth/policies/{policyId}";

/** Issuers that many use. */
const KNOWN = [
  "https://token.actions.githubusercontent.com",
  "https://gitlab.com",
  "https://agent.buildkite.com",
  "https://sts.amazonaws.com",
];

const LIFETIMES: [string, string][] = [
  ["", "As long as the job asks, at most 25 hours"],
  ["900", "At most 15 minutes"],
  ["3600", "At most an hour"],
  ["7200", "At most 2 hours"],
];

interface OfDialog {
  org: string;
  onClose: () => void;
}

/** The keys that a text has: `null` without any, `undefined` if it cannot be read. */
function keysOf(text: string): object | null | undefined {
  if (text.trim() === "") return null;
  try {
    const keys: unknown = JSON.parse(text);
    return typeof keys === "object" && keys !== null ? keys : undefined;
  } catch {
    return undefined;
  }
}

function EditIssuer({ org, issuer, onClose }: OfDialog & { issuer?: Issuer }) {
  const client = useQueryClient();
  const [name, setName] = useState(issuer?.name ?? "");
  const [url, setUrl] = useState(issuer?.url ?? "");
  const [seconds, setSeconds] = useState(issuer?.maxExpiration ? String(issuer.maxExpiration) : "");
  const [keys, setKeys] = useState(issuer?.jwks ? JSON.stringify(issuer.jwks, null, 2) : "");
  const jwks = keysOf(keys);
  const known = LIFETIMES.some(([value]) => value === seconds);
  const run = async () => {
    const maxExpiration = seconds === "" ? null : Number(seconds);
    if (issuer) {
      const edit = { name: name.trim(), maxExpiration, ...(issuer.jwks || jwks ? { jwks } : {}) };
      await change("PATCH", ISSUER, { orgName: org, issuerId: issuer.id }, edit);
    } else {
      const added = { name: name.trim(), url: url.trim(), maxExpiration, jwks: jwks ?? undefined };
      await change("POST", ISSUERS, { orgName: org }, added);
    }
    await client.invalidateQueries({ queryKey: ["issuers", org] });
  };
  return (
    <Confirm
      title={issuer ? `Change ${issuer.name}?` : "Add an issuer?"}
      action={issuer ? "Change it" : "Add the issuer"}
      isDangerous={false}
      isReady={name.trim() !== "" && url.trim() !== "" && jwks !== undefined}
      onClose={onClose}
      run={run}
    >
      {!issuer && (
        <>
          <p>
            The server fetches the issuer's public keys from its address, unless you give them here. No job gets a token
            before a policy allows it.
          </p>
          <Line label="Address" value={url} onChange={setUrl} offered={KNOWN} hint="As its tokens have it in iss." />
        </>
      )}
      <Line label="Name" value={name} onChange={setName} hint="For people, such as GitHub." />
      <Select
        label="Tokens live"
        value={seconds}
        onChange={setSeconds}
        options={known ? LIFETIMES : [...LIFETIMES, [seconds, `At most ${duration(Number(seconds))}`]]}
      />
      <label className="field">
        <span>Public keys, for an issuer that the server cannot reach</span>
        <textarea
          rows={3}
          spellCheck={false}
          value={keys}
          onChange={(event) => setKeys(event.target.value)}
          placeholder={'{ "keys": [] }'}
        />
        <span className="faint">
          A JSON Web Key Set. Give the new one when the issuer replaces its keys. Empty: the server fetches them.
        </span>
      </label>
    </Confirm>
  );
}

function RemoveIssuer({ org, issuer, onClose }: OfDialog & { issuer: Issuer }) {
  const client = useQueryClient();
  const run = async () => {
    await change("DELETE", ISSUER, { orgName: org, issuerId: issuer.id });
    await client.invalidateQueries({ queryKey: ["issuers", org] });
  };
  return (
    <Confirm title={`Delete ${issuer.name}?`} action="Delete it" onClose={onClose} run={run}>
      <p>
        Its policies and the consents of users go with it, and its jobs get no token any more. Tokens that were given work
        until they expire.
      </p>
    </Confirm>
  );
}

const KINDS: [Policy["tokenType"], string][] = [
  ["organization", "of the organization"],
  ["team", "of a team"],
  ["personal", "of a person"],
];

/** The rules that a text has: a claim, `=`, and a pattern, on each line. */
function rulesOf(text: string): Record<string, string> | undefined {
  const rules: Record<string, string> = {};
  for (const line of text.split("\n").map((line) => line.trim()).filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1) return undefined;
    rules[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return Object.keys(rules).length > 0 ? rules : undefined;
}

function EditPolicy({
  org,
  issuer,
  all,
  index,
  onClose,
}: OfDialog & { issuer: Issuer; all: Policy[]; index: number | undefined }) {
  const client = useQueryClient();
  const old = index === undefined ? undefined : all[index];
  const [decision, setDecision] = useState<Policy["decision"]>(old?.decision ?? "allow");
  const [kind, setKind] = useState<Policy["tokenType"]>(old?.tokenType ?? "organization");
  const [who, setWho] = useState(old?.teamName ?? old?.userLogin ?? "");
  const [role, setRole] = useState<string>(old?.roleID ?? "apply");
  const [text, setText] = useState(
    Object.entries(old?.rules ?? {})
      .map(([claim, pattern]) => `${claim}=${pattern}`)
      .join("\n"),
  );
  const rules = rulesOf(text);
  const run = async () => {
    const policy = {
      // What this page does not show stays.
      ...old,
      decision,
      tokenType: kind,
      teamName: kind === "team" ? who.trim() : null,
      userLogin: kind === "personal" ? who.trim() : null,
      roleID: kind === "personal" ? null : role,
      authorizedPermissions: old?.authorizedPermissions ?? [],
      rules,
    };
    const policies = index === undefined ? [...all, policy] : all.map((one, at) => (at === index ? policy : one));
    await change("PATCH", POLICIES, { orgName: org, policyId: issuer.id }, { policies });
    await client.invalidateQueries({ queryKey: ["policies", org, issuer.id] });
  };
  return (
    <Confirm
      title={old ? "Change this policy?" : `Which jobs of ${issuer.name} get what?`}
      action={old ? "Change it" : "Add the policy"}
      isDangerous={false}
      isReady={rules !== undefined && (kind === "organization" || who.trim() !== "")}
      onClose={onClose}
      run={run}
    >
      <Select
        label="Decision"
        value={decision}
        onChange={(value) => setDecision(value as Policy["decision"])}
        options={[
          ["allow", "Allow"],
          ["deny", "Deny: it wins over all that allow"],
        ]}
      />
      <Select
        label="Token"
        value={kind}
        onChange={(value) => setKind(value as Policy["tokenType"])}
        options={KINDS.map(([value, words]): [string, string] => [value, words])}
      />
      {kind === "team" && <Line label="Team" value={who} onChange={setWho} />}
      {kind === "personal" && (
        <Line label="User" value={who} onChange={setWho} hint="The user has to consent before a job gets a token." />
      )}
      {kind !== "personal" && decision === "allow" && <RoleChoice org={org} value={role} onChange={setRole} />}
      <label className="field">
        <span>Rules, all of which have to match</span>
        <textarea
          rows={4}
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.target.value)}
          placeholder={"repository=acme/app\nevent_name=pull_request"}
        />
        <span className="faint">
          A claim of the token, =, and a pattern for its whole text; * stands for any text, ? for one character. An issuer
          of many customers needs a rule that names yours.
        </span>
      </label>
    </Confirm>
  );
}

function Policies({ org, issuer, isAdmin }: { org: string; issuer: Issuer; isAdmin: boolean }) {
  const client = useQueryClient();
  const policies = useQuery(queries.policies(org, issuer.id));
  const [edited, edit] = useState<{ index?: number }>();
  const [removed, remove] = useState<number>();
  const all = policies.data?.policies ?? [];
  return (
    <Card
      title={`Policies of ${visible(issuer.name)}`}
      count={policies.data && all.length}
      actions={
        isAdmin && policies.data && (
          <Button className="button small" onPress={() => edit({})}>
            Add a policy
          </Button>
        )
      }
    >
      <Loaded of={policies} rows={2}>
        {() =>
          all.length === 0 ? (
            <p className="none">Without a policy that allows, no job of it gets a token.</p>
          ) : (
            <Table label={`Policies of ${issuer.name}`} head={["Decision", "Token", "Rules", ""]}>
              {all.map((policy, index) => (
                <tr key={index}>
                  <td>
                    <Badge tone={policy.decision === "allow" ? "good" : "bad"}>{policy.decision}</Badge>
                  </td>
                  <td>
                    {KINDS.find(([kind]) => kind === policy.tokenType)?.[1]}{" "}
                    {policy.teamName && <strong>{visible(policy.teamName)}</strong>}
                    {policy.userLogin && <strong>{policy.userLogin}</strong>}
                    {policy.decision === "allow" && policy.tokenType !== "personal" && (
                      <div className="faint">with the role {policy.roleID ?? "member"}</div>
                    )}
                  </td>
                  <td>
                    {Object.entries(policy.rules).map(([claim, pattern]) => (
                      <div key={claim}>
                        <code>
                          {visible(claim)}={visible(pattern)}
                        </code>
                      </div>
                    ))}
                  </td>
                  <td className="actions">
                    {isAdmin && (
                      <RowMenu
                        of={`policy ${index + 1} of ${issuer.name}`}
                        actions={[
                          ["Change", () => edit({ index })],
                          // The server refuses an empty list: the last one goes with its issuer.
                          ...(all.length > 1 ? [["Remove", () => remove(index)] as [string, () => void]] : []),
                        ]}
                      />
                    )}
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
      {edited && (
        <EditPolicy org={org} issuer={issuer} all={all} index={edited.index} onClose={() => edit(undefined)} />
      )}
      {removed !== undefined && (
        <Confirm
          title={`Remove policy ${removed + 1} of ${issuer.name}?`}
          action="Remove it"
          onClose={() => remove(undefined)}
          run={async () => {
            const policies = all.filter((_, at) => at !== removed);
            await change("PATCH", POLICIES, { orgName: org, policyId: issuer.id }, { policies });
            await client.invalidateQueries({ queryKey: ["policies", org, issuer.id] });
          }}
        >
          <p>Jobs that it allowed get no token any more. If it denied, others may allow them now.</p>
        </Confirm>
      )}
    </Card>
  );
}

export function Issuers() {
  const org = useOrg();
  const isAdmin = useIsAdmin(org);
  const issuers = useQuery(queries.issuers(org));
  const [edited, edit] = useState<{ issuer?: Issuer }>();
  const [removed, remove] = useState<Issuer>();
  useTitle("Issuers", org);
  return (
    <>
      <h1>Issuers</h1>
      <p className="faint">
        A job of a CI needs no secret: the CI gives it a token, and the server exchanges that for an access token, if a
        policy allows it.
      </p>
      <Card
        title="Issuers"
        count={issuers.data?.oidcIssuers.length}
        actions={
          isAdmin && (
            <Button className="button small" onPress={() => edit({})}>
              Add an issuer
            </Button>
          )
        }
      >
        <Loaded of={issuers}>
          {({ oidcIssuers }) =>
            oidcIssuers.length === 0 ? (
              <Empty icon="key" title="No issuer is registered">
                Each job needs an access token in its secrets.
              </Empty>
            ) : (
              <Table label="Issuers" head={["Issuer", "Tokens live", "Keys", "Last used", ""]}>
                {oidcIssuers.map((issuer) => (
                  <tr key={issuer.id}>
                    <td>
                      <span className="strong">{visible(issuer.name)}</span>
                      <div className="faint what">{issuer.url}</div>
                    </td>
                    <td>{issuer.maxExpiration ? `at most ${duration(issuer.maxExpiration)}` : "at most 25 h"}</td>
                    <td>{issuer.jwks ? "registered here" : "fetched"}</td>
                    <td>{issuer.lastUsed ? <Time at={issuer.lastUsed} /> : <span className="faint">never</span>}</td>
                    <td className="actions">
                      {isAdmin && (
                        <RowMenu
                          of={issuer.name}
                          actions={[
                            ["Change", () => edit({ issuer })],
                            ["Delete", () => remove(issuer)],
                          ]}
                        />
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
      </Card>
      {issuers.data?.oidcIssuers.map((issuer) => (
        <Policies key={issuer.id} org={org} issuer={issuer} isAdmin={isAdmin} />
      ))}
      {edited && <EditIssuer org={org} issuer={edited.issuer} onClose={() => edit(undefined)} />}
      {removed && <RemoveIssuer org={org} issuer={removed} onClose={() => remove(undefined)} />}
    </>
  );
}
