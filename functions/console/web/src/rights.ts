// What the person may do. The server decides: this only spares them buttons that it would refuse.

import { useQuery } from "@tanstack/react-query";
import * as queries from "./api/queries";
import type { EnvironmentName, OwnRights, StackName } from "./api/queries";

export type Right = "see" | "view" | "outputs" | "plan" | "apply" | "member" | "audit" | "admin";

/** What a right is asked about: a stack, a state or an environment. */
export interface Unit {
  project: string;
  name: string;
  /** The tags of a stack or the labels of a state, if they are known. */
  tags?: Record<string, unknown>;
}

/** The person's login. */
export const useLogin = () => useQuery(queries.user).data?.githubLogin;

/** Whether a pattern matches a whole text. `*` stands for any characters. It takes time in proportion to both. */
function matches(pattern: string, text: string): boolean {
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop();
  if (last === undefined) return pattern === text;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of others) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - at >= last.length && text.endsWith(last);
}

/** Whether a part of an organization reaches a unit. */
export function reaches(on: string, { project, name, tags = {} }: Unit): boolean {
  if (on === "*") return true;
  if (on.startsWith("tag:")) {
    const at = on.indexOf("=");
    const value = tags[on.slice("tag:".length, at)];
    return value !== undefined && String(value) === on.slice(at + 1);
  }
  const [projects = "", names = ""] = on.split("/");
  return matches(projects, project) && matches(names, name);
}

function has(rights: OwnRights | undefined, right: Right, unit: Unit | undefined): boolean {
  if (!rights) return false;
  if (rights.rights.includes(right)) return true;
  if (!unit || (rights.within && !reaches(rights.within, unit))) return false;
  return rights.grants.some((grant) => grant.rights.includes(right) && reaches(grant.on ?? "", unit));
}

/** Asks for the person's rights: in the organization, or on one of its units. Without an answer yet, there are none. */
export function useRights(org: string) {
  const { data } = useQuery(queries.rights(org));
  return {
    may: (right: Right, unit?: Unit) => has(data, right, unit),
    /** Whether the person has the right on something at least. */
    maySomewhere: (right: Right) => data?.somewhere.includes(right) ?? false,
    isServerAdmin: data?.serverAdmin ?? false,
    own: data,
  };
}

/** Whether the person is an admin of the organization. */
export const useIsAdmin = (org: string) => useRights(org).may("admin");

/** Asks for the person's rights on a stack. */
export function useRightsOnStack({ org, project, stack }: StackName): (right: Right) => boolean {
  const { may } = useRights(org);
  const tags = useQuery({ ...queries.stack({ org, project, stack }), enabled: false }).data?.tags;
  return (right) => may(right, { project, name: stack, tags });
}

/** Whether the person administers a stack, also by a grant on it. */
export const useIsAdminOf = (name: StackName) => useRightsOnStack(name)("admin");

/** What of a state the rights on it depend on. */
interface OfState {
  project: string;
  state: string;
  labels?: Record<string, unknown>;
}

/** Asks for the person's rights on a state. There are none before it is known. */
export function useRightsOnState(org: string, state: OfState | undefined): (right: Right) => boolean {
  const { may } = useRights(org);
  return (right) =>
    state !== undefined && may(right, { project: state.project, name: state.state, tags: state.labels });
}

/** Asks for the person's rights on an environment. Grants reach environments by their names. */
export function useRightsOnEnvironment({ org, project, env }: EnvironmentName): (right: Right) => boolean {
  const { may } = useRights(org);
  return (right) => may(right, { project, name: env });
}
