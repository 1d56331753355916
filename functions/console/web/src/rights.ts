// What the person may do. The server decides: this only spares them buttons that it would refuse.

import { useQuery } from "@tanstack/react-query";
import * as queries from "./api/queries";
import type { StackName } from "./api/queries";

/** The person's login. */
export const useLogin = () => useQuery(queries.user).data?.githubLogin;

/** Whether the person is an admin of the organization. */
export function useIsAdmin(org: string): boolean {
  const login = useLogin();
  const { data } = useQuery(queries.members(org));
  return data?.members.some(({ user, fgaRole }) => user.githubLogin === login && fgaRole.name === "admin") ?? false;
}

/** Whether the person administers a stack, also by a grant on it. */
export function useIsAdminOf(name: StackName): boolean {
  const { data } = useQuery(queries.access(name));
  return data?.rights.some(({ right }) => right === "admin") ?? false;
}
