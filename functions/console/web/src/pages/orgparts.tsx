// Parts of the pages of the organization.

import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import * as queries from "../api/queries";
import { useLogin } from "../rights";
import { Icon } from "../ui/icons";
import { Card, Select } from "../ui/parts";

export const useOrg = () => useParams({ from: "/$org/-" }).org;

/** Chooses a role, and says what it allows. */
export function RoleChoice({
  org,
  value,
  onChange,
  isGrant = false,
  none,
}: {
  org: string;
  value: string;
  onChange: (role: string) => void;
  /** A grant gives something. */
  isGrant?: boolean;
  /** What no choice means, if that is one. */
  none?: [string, string];
}) {
  const roles = useQuery(queries.roles(org)).data?.roles ?? [];
  const offered = roles.filter(({ name }) => !isGrant || name !== "none");
  const about = value === "" ? none?.[1] : roles.find(({ name }) => name === value)?.description;
  return (
    <>
      <Select
        label="Role"
        value={value}
        onChange={onChange}
        options={[
          ...(none ? [["", none[0]] as [string, string]] : []),
          ...offered.map(({ name }): [string, string] => [name, name]),
        ]}
      />
      {about && <p className="faint">{about}</p>}
    </>
  );
}

/** How a part of an organization is written. */
export const SCOPES = (
  <>
    <code>*</code> for everything, <code>PROJECT/NAME</code> with <code>*</code> for any characters, or{" "}
    <code>tag:NAME=VALUE</code>
  </>
);

/** The way to what members may do with a state or an environment, and why. Only an admin of it asks about others. */
export function WhoMay({
  org,
  kind,
  name,
  isAdmin,
}: {
  org: string;
  kind: "tfstate" | "environment";
  /** `PROJECT/NAME`. */
  name: string;
  isAdmin: boolean;
}) {
  const login = useLogin();
  return (
    <Card title="Who may use it">
      <ul className="plain-list">
        <li className="list-row">
          <Icon name="person" />
          <Link
            to="/$org/-/grants"
            params={{ org }}
            search={{ user: isAdmin ? undefined : login, stack: name, kind }}
          >
            {isAdmin ? "What a member may do with it, and why" : "What you may do with it, and why"}
          </Link>
        </li>
      </ul>
    </Card>
  );
}
