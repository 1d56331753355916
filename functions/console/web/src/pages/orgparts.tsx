// Parts of the pages of the organization.

import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import * as queries from "../api/queries";
import { Select } from "../ui/parts";

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
