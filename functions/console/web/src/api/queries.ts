// What pages ask for. A list has a bound, and says when it has reached it.

import { hashKey, infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import {
  ApiError,
  type Got,
  type Posted,
  address,
  read,
  readDefinition,
  readExactly,
  refuseOther,
  reveal,
  sendDefinition,
  session,
} from "./client";
import type { Checked } from "../definitions";
import { isObject, resealed } from "../values";

export type User = Got<"/api/user">;
export type StackSummary = Got<"/api/user/stacks">["stacks"][number];
export type Stack = Got<"/api/stacks/{orgName}/{projectName}/{stackName}">;
export type Update = Got<"/api/stacks/{orgName}/{projectName}/{stackName}/updates/{version}">;
export type StateSummary = Got<"/api/orgs/{orgName}/tfstates">["states"][number];
export type State = Got<"/api/tfstates/{guid}">;
export type StateVersion = Got<"/api/tfstates/{guid}/versions">["versions"][number];
export type Rejected = Got<"/api/tfstates/{guid}/rejected">["rejected"][number];
export type ListedLock = Got<"/api/orgs/{orgName}/tfstate-locks">["locks"][number];
export type Lock = ListedLock["lock"];
export type Member = Got<"/api/orgs/{orgName}/members">["members"][number];
export type Team = Got<"/api/orgs/{orgName}/teams/{teamName}">;
export type Grant = Got<"/api/orgs/{orgName}/grants">["grants"][number];
export type Token = Got<"/api/user/tokens">["tokens"][number];
export type DeletedState = Got<"/api/orgs/{orgName}/tfstate-removed">["states"][number];
export type DeletedStack = Got<"/api/orgs/{orgName}/restore-stack">["deletedStacks"][number];
export type OwnRights = Got<"/api/orgs/{orgName}/rights">;
export type Issuer = Got<"/api/orgs/{orgName}/oidc/issuers">["oidcIssuers"][number];
export type Policy = Got<"/api/orgs/{orgName}/auth/policies/oidcissuers/{issuerId}">["policies"][number];
export type LabelPolicy = Got<"/api/orgs/{orgName}/tfstate-policy">["policy"];
export type NotCompliant = Got<"/api/orgs/{orgName}/tfstate-policy/compliance">["states"][number];
export type StoredIn = Got<"/api/admin/storage">["organizations"][number];
export type Protection = NonNullable<Stack["protection"]>;
export type EnvironmentSummary = Got<"/api/esc/environments/{orgName}">["environments"][number];
export type Revision = Got<"/api/esc/environments/{orgName}/{projectName}/{envName}/versions">[number];

/** How an update ended, or that it runs. The `result` is what clients know, which call a cancelled update failed. */
export const resultOf = (info: Update["info"]): string => info.outcome ?? info.result;

/** The address of a stack. */
export interface StackName {
  org: string;
  project: string;
  stack: string;
}

export const stackPath = ({ org, project, stack }: StackName) => ({ orgName: org, projectName: project, stackName: stack });

/** A list that was read up to a bound. */
export interface Bounded<T> {
  items: T[];
  /** Whether there are more. */
  more: boolean;
}

/** Reads pages until there are no more, or until the bound. */
async function bounded<T>(
  max: number,
  page: (token: string | undefined) => Promise<{ items: T[]; next?: string | null }>,
): Promise<Bounded<T>> {
  const items: T[] = [];
  let token: string | undefined;
  do {
    const { items: found, next } = await page(token);
    items.push(...found);
    token = next ?? undefined;
  } while (token !== undefined && items.length < max);
  return { items, more: token !== undefined };
}

/** Stacks, and states, in a list at most. */
export const LIST_MAX = 2000;

const EVERY_MINUTE = 60_000;

export const user = queryOptions({
  queryKey: ["user"],
  queryFn: async ({ signal }) => {
    const user = await read("/api/user", {}, {}, signal);
    session.isOf(user.githubLogin);
    await refuseOther();
    return user;
  },
  staleTime: EVERY_MINUTE,
});

export const defaultOrganization = queryOptions({
  queryKey: ["default-organization"],
  queryFn: ({ signal }) => read("/api/user/organizations/default", {}, {}, signal),
  staleTime: Number.POSITIVE_INFINITY,
});

export const stacks = (org: string, project?: string) =>
  queryOptions({
    queryKey: ["stacks", org, project ?? ""],
    queryFn: ({ signal }) =>
      bounded<StackSummary>(LIST_MAX, async (continuationToken) => {
        const query = { organization: org, project: project || undefined, continuationToken };
        const page = await read("/api/user/stacks", {}, query, signal);
        return { items: page.stacks, next: page.continuationToken };
      }),
    // Looked at more often while something runs.
    refetchInterval: ({ state }) => (state.data?.items.some((one) => one.lastUpdate === 0) ? 10_000 : EVERY_MINUTE),
  });

export const states = (org: string, project?: string) =>
  queryOptions({
    queryKey: ["states", org, project ?? ""],
    queryFn: ({ signal }) =>
      bounded<StateSummary>(LIST_MAX, async (continuationToken) => {
        const query = { project: project || undefined, continuationToken };
        const page = await read("/api/orgs/{orgName}/tfstates", { orgName: org }, query, signal);
        return { items: page.states, next: page.continuationToken };
      }),
    refetchInterval: EVERY_MINUTE,
  });

export const locks = (org: string) =>
  queryOptions({
    queryKey: ["locks", org],
    queryFn: ({ signal }) =>
      bounded<ListedLock>(LIST_MAX, async (continuationToken) => {
        const page = await read("/api/orgs/{orgName}/tfstate-locks", { orgName: org }, { continuationToken }, signal);
        return { items: page.locks, next: page.continuationToken };
      }),
    refetchInterval: EVERY_MINUTE,
  });

export const stack = (name: StackName) =>
  queryOptions({
    queryKey: ["stack", name],
    queryFn: ({ signal }) => read("/api/stacks/{orgName}/{projectName}/{stackName}", stackPath(name), {}, signal),
    refetchInterval: ({ state }) => (state.data?.currentOperation ? 5_000 : EVERY_MINUTE),
  });

export const stackOutputs = (name: StackName, version: number) =>
  queryOptions({
    queryKey: ["stack-outputs", name, version],
    queryFn: ({ signal }) =>
      read("/api/stacks/{orgName}/{projectName}/{stackName}/outputs", stackPath(name), {}, signal),
  });

/** Who may do what with a stack. */
export const collaborators = (name: StackName) =>
  queryOptions({
    queryKey: ["collaborators", name],
    queryFn: ({ signal }) =>
      read("/api/stacks/{orgName}/{projectName}/{stackName}/collaborators", stackPath(name), {}, signal),
  });

/** Entries on a page of a history. */
export const HISTORY_PAGE = 50;

/** The document also has the history for the CLI, which has no pages. */
type History = Extract<Got<"/api/stacks/{orgName}/{projectName}/{stackName}/updates">, { total: number }>;

export const history = (name: StackName) =>
  infiniteQueryOptions({
    queryKey: ["history", name],
    queryFn: ({ signal, pageParam }) => {
      const query = { "output-type": "service", pageSize: HISTORY_PAGE, page: pageParam };
      const path = "/api/stacks/{orgName}/{projectName}/{stackName}/updates";
      return read(path, stackPath(name), query, signal) as Promise<History>;
    },
    initialPageParam: 1,
    getNextPageParam: (last, _, page) => (page * HISTORY_PAGE < last.total ? page + 1 : undefined),
  });

/** The previews of all versions, those of the newest one first. */
export const previews = (name: StackName) =>
  infiniteQueryOptions({
    queryKey: ["previews", name],
    queryFn: ({ signal, pageParam }) => {
      const query = { pageSize: HISTORY_PAGE, continuationToken: pageParam || undefined };
      return read("/api/stacks/{orgName}/{projectName}/{stackName}/previews", stackPath(name), query, signal);
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.continuationToken ?? undefined,
  });

/** The entry of a version. It never changes. */
export const update = (name: StackName, version: string) =>
  queryOptions({
    queryKey: ["update", name, version],
    queryFn: ({ signal }) =>
      read(
        "/api/stacks/{orgName}/{projectName}/{stackName}/updates/{version}",
        { ...stackPath(name), version },
        {},
        signal,
      ),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The newest entry. `last` is what a list says of the last update, so that it is read again only after a new one. */
export const latest = (name: StackName, last: number) =>
  queryOptions({
    queryKey: ["latest", name, last],
    queryFn: ({ signal }) =>
      read("/api/stacks/{orgName}/{projectName}/{stackName}/updates/latest", stackPath(name), {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });

/** An update or a preview by its ID, as long as it is kept. While it runs, its events tell when to ask again. */
export const updateById = (name: StackName, id: string) =>
  queryOptions({
    queryKey: ["update-by-id", name, id],
    queryFn: ({ signal }) =>
      read(
        "/api/stacks/{orgName}/{projectName}/{stackName}/updates/{version}",
        { ...stackPath(name), version: id },
        {},
        signal,
      ),
  });

export const exportAddress = (name: StackName, version: number) =>
  address("/api/stacks/{orgName}/{projectName}/{stackName}/export/{version}", {
    ...stackPath(name),
    version: String(version),
  });

const STACK = "/api/stacks/{orgName}/{projectName}/{stackName}";

export type ResourcePage = Got<`${typeof STACK}/resources`>;

/** A resource in the tree of a version. */
export type ResourceRow = ResourcePage["resources"][number];

/** The differences between two versions. The lists have the first of each kind, the counts are of all. */
export type Differences = Got<`${typeof STACK}/updates/{version}/diff/{other}`>;

/** A resource that differs between two versions. */
export type Differing = Differences["changed"][number];

/** What differs between two versions. Neither changes. */
export const comparison = (name: StackName, version: number, other: number) =>
  queryOptions({
    queryKey: ["comparison", name, version, other],
    queryFn: ({ signal }) => {
      const versions = { ...stackPath(name), version: String(version), other: String(other) };
      return read(`${STACK}/updates/{version}/diff/{other}`, versions, {}, signal);
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: EVERY_MINUTE,
    retry: false,
  });

/** Resources on a page of the tree. */
const RESOURCES_PAGE = 500;

/** The tree of a version, from its top. A version never changes. */
export const resources = (name: StackName, version: number, filter?: string) =>
  infiniteQueryOptions({
    queryKey: ["resources", name, version, filter ?? ""],
    queryFn: ({ signal, pageParam }) => {
      const query = { version, filter, size: RESOURCES_PAGE, continuationToken: pageParam || undefined };
      return read(`${STACK}/resources`, stackPath(name), query, signal);
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.continuationToken,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: EVERY_MINUTE,
    // What was found before stays until there is something else.
    placeholderData: (before, query) => (query?.queryKey[2] === version ? before : undefined),
  });

type Answered = Got<`${typeof STACK}/resource`>;

/** A resource that another one needs, or that needs it. */
export type Neighbour = Answered["dependencies"][number];

/** A resource of a version, with secrets masked. */
export type OneResource = Omit<Answered, "inputs" | "outputs"> & {
  inputs?: Record<string, unknown>;
  outputs?: Record<string, unknown>;
};

/** Inputs or outputs with what `values.ts` takes for a secret. */
function membersOf(sent: unknown): Record<string, unknown> | undefined {
  const found = resealed(sent);
  return isObject(found) ? found : undefined;
}

/** Names a resource of a version. */
export interface ResourceName {
  urn: string;
  version: number;
  /** Whether the one that waits to be deleted is meant. */
  delete?: boolean;
}

const resourceQuery = ({ urn, version, delete: isDelete }: ResourceName) => ({
  urn,
  version,
  delete: isDelete || undefined,
});

export const resource = (name: StackName, of: ResourceName) =>
  queryOptions({
    queryKey: ["resource", name, of],
    queryFn: async ({ signal }): Promise<OneResource> => {
      const query = { ...resourceQuery(of), short: true };
      const found = await readExactly(`${STACK}/resource`, stackPath(name), query, signal);
      const { inputs, outputs, ...rest } = found;
      return { ...rest, inputs: membersOf(inputs), outputs: membersOf(outputs) };
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: EVERY_MINUTE,
  });

/** Opens the secret at a place of a resource, which the audit trail records. The place is a JSON pointer. */
export async function openSecret(
  name: StackName,
  of: ResourceName,
  path: string,
  signal: AbortSignal,
): Promise<unknown> {
  const url = address("/api/stacks/{orgName}/{projectName}/{stackName}/resource/secret", stackPath(name));
  const found = await reveal(url, { ...resourceQuery(of), path }, signal);
  return (found as Posted<`${typeof STACK}/resource/secret`>).value;
}

/** A version that changed a resource. */
export type ResourceChange = Got<`${typeof STACK}/resource/history`>["entries"][number];

/** A property that a version changed. */
export type PropertyChange = ResourceChange["changes"][number];

/** The versions that changed a resource, newest first. */
export const resourceHistory = (name: StackName, urn: string, version: number) =>
  infiniteQueryOptions({
    queryKey: ["resource-history", name, version, urn],
    queryFn: ({ signal, pageParam }) => {
      const query = { urn, version, continuationToken: pageParam || undefined };
      return readExactly(`${STACK}/resource/history`, stackPath(name), query, signal);
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.continuationToken,
    staleTime: EVERY_MINUTE,
  });

/** The resource that was asked about is the first node. An edge has places in `nodes`: `from` needs `to`. */
export type Neighbourhood = Got<`${typeof STACK}/resource/neighbours`>;

export const neighbours = (name: StackName, of: ResourceName, hops: number) =>
  queryOptions({
    queryKey: ["neighbours", name, of, hops],
    // What is fewer or more steps away stays meanwhile, and what is around another resource does not.
    placeholderData: (before: Neighbourhood | undefined, query) =>
      hashKey(query?.queryKey.slice(1, 3) ?? []) === hashKey([name, of]) ? before : undefined,
    queryFn: ({ signal }) => {
      const query = { ...resourceQuery(of), hops };
      return read(`${STACK}/resource/neighbours`, stackPath(name), query, signal);
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: EVERY_MINUTE,
  });

export const stateByName = (org: string, project: string, name: string) =>
  queryOptions({
    queryKey: ["state", org, project, name],
    queryFn: ({ signal }) =>
      read(
        "/api/orgs/{orgName}/tfstates/{projectName}/{state}",
        { orgName: org, projectName: project, state: name },
        {},
        signal,
      ),
    refetchInterval: ({ state }) => (state.data?.lock ? 10_000 : EVERY_MINUTE),
  });

export const stateVersions = (guid: string) =>
  infiniteQueryOptions({
    queryKey: ["state-versions", guid],
    queryFn: ({ signal, pageParam }) =>
      read("/api/tfstates/{guid}/versions", { guid }, { continuationToken: pageParam || undefined }, signal),
    initialPageParam: "",
    getNextPageParam: (last) => last.continuationToken ?? undefined,
  });

export const rejected = (guid: string) =>
  queryOptions({
    queryKey: ["rejected", guid],
    queryFn: ({ signal }) => read("/api/tfstates/{guid}/rejected", { guid }, {}, signal),
  });

/** What differs between two versions, or in one resource of them. */
export const stateDiff = (guid: string, version: string, other: string, address?: string) =>
  queryOptions({
    queryKey: ["state-diff", guid, version, other, address ?? ""],
    queryFn: ({ signal }) =>
      read("/api/tfstates/{guid}/versions/{version}/diff/{other}", { guid, version, other }, { address }, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const environments = (org: string) =>
  queryOptions({
    queryKey: ["environments", org],
    queryFn: ({ signal }) =>
      bounded<EnvironmentSummary>(LIST_MAX, async (continuationToken) => {
        const page = await read("/api/esc/environments/{orgName}", { orgName: org }, { continuationToken }, signal);
        return { items: page.environments, next: page.nextToken || undefined };
      }),
    refetchInterval: EVERY_MINUTE,
  });

/** The address of an environment. */
export interface EnvironmentName {
  org: string;
  project: string;
  env: string;
}

export const environmentPath = ({ org, project, env }: EnvironmentName) => ({
  orgName: org,
  projectName: project,
  envName: env,
});

export const ENVIRONMENT = "/api/esc/environments/{orgName}/{projectName}/{envName}";

/** The definition of a revision, with sealed secrets. Without a number, that of now. */
export const definition = (name: EnvironmentName, revision?: number) =>
  queryOptions({
    queryKey: ["definition", name, revision ?? "now"],
    queryFn: ({ signal }) => {
      const names = environmentPath(name);
      const url =
        revision === undefined
          ? address(ENVIRONMENT, names)
          : address(`${ENVIRONMENT}/versions/{version}`, { ...names, version: String(revision) });
      return readDefinition(url, signal);
    },
    // Somebody else's revision is better met before one's own is complete.
    refetchInterval: revision === undefined ? 30_000 : false,
    staleTime: revision === undefined ? 0 : Number.POSITIVE_INFINITY,
  });

/** The errors of a definition, and the values that are known without opening it. */
export const check = (org: string, text: string) =>
  queryOptions({
    queryKey: ["environment-check", org, text],
    queryFn: async ({ signal }) => {
      const url = address("/api/esc/environments/{orgName}/yaml/check", { orgName: org });
      try {
        return (await sendDefinition("POST", url, text, { signal })) as Checked;
      } catch (error) {
        // Errors of the syntax are the answer too.
        if (error instanceof ApiError && error.reason === "environment_invalid") return error.body as Checked;
        throw error;
      }
    },
    staleTime: EVERY_MINUTE,
    gcTime: EVERY_MINUTE,
    refetchOnWindowFocus: false,
    retry: false,
  });

/** Entries on a page of revisions. */
const REVISIONS_PAGE = 50;

export const revisions = (name: EnvironmentName) =>
  infiniteQueryOptions({
    queryKey: ["revisions", name],
    queryFn: ({ signal, pageParam }) => {
      const query = { count: REVISIONS_PAGE, before: pageParam || undefined };
      return read(`${ENVIRONMENT}/versions`, environmentPath(name), query, signal);
    },
    initialPageParam: 0,
    getNextPageParam: (last) => {
      const oldest = last.at(-1)?.number ?? 1;
      return last.length === REVISIONS_PAGE && oldest > 1 ? oldest : undefined;
    },
  });

/** Which revision each tag names. */
export const revisionTags = (name: EnvironmentName) =>
  queryOptions({
    queryKey: ["revision-tags", name],
    queryFn: ({ signal }) => read(`${ENVIRONMENT}/versions/tags`, environmentPath(name), {}, signal),
  });

/** An environment that imports another one. */
export interface Importing {
  project: string;
  name: string;
  /** What it imports: `latest`, numbers of revisions and tags. */
  of: string[];
}

/** What imports an environment. */
export interface ImportedBy extends Bounded<Importing> {
  /** The number of others, which this person may not see. */
  hidden: number;
}

export const importedBy = (name: EnvironmentName) =>
  queryOptions({
    queryKey: ["imported-by", name],
    queryFn: async ({ signal }): Promise<ImportedBy> => {
      const found = new Map<string, Importing>();
      let hidden = 0;
      const listed = await bounded<string>(LIST_MAX, async (continuationToken) => {
        const query = { allRevisions: true, continuationToken };
        const page = await read(`${ENVIRONMENT}/referrers`, environmentPath(name), query, signal);
        hidden += page.hidden;
        const before = found.size;
        for (const [version, all] of Object.entries(page.referrers)) {
          for (const { environment } of all) {
            const key = `${environment.project}/${environment.name}`;
            const one = found.get(key) ?? { project: environment.project, name: environment.name, of: [] };
            one.of.push(version);
            found.set(key, one);
          }
        }
        return { items: [...found.keys()].slice(before), next: page.continuationToken };
      });
      const items = [...found.values()].sort(
        (a, b) => a.project.localeCompare(b.project) || a.name.localeCompare(b.name),
      );
      return { items, hidden, more: listed.more };
    },
    staleTime: EVERY_MINUTE,
  });

export const environmentTags = (name: EnvironmentName) =>
  queryOptions({
    queryKey: ["environment-tags", name],
    queryFn: ({ signal }) => read(`${ENVIRONMENT}/tags`, environmentPath(name), {}, signal),
  });

export const environmentSettings = (name: EnvironmentName) =>
  queryOptions({
    queryKey: ["environment-settings", name],
    queryFn: ({ signal }) => read(`${ENVIRONMENT}/settings`, environmentPath(name), {}, signal),
  });

export const members = (org: string) =>
  queryOptions({
    queryKey: ["members", org],
    queryFn: ({ signal }) => read("/api/orgs/{orgName}/members", { orgName: org }, {}, signal),
    staleTime: EVERY_MINUTE,
  });

export const teams = (org: string) =>
  queryOptions({
    queryKey: ["teams", org],
    queryFn: ({ signal }) => read("/api/orgs/{orgName}/teams", { orgName: org }, {}, signal),
  });

export const team = (org: string, name: string) =>
  queryOptions({
    queryKey: ["team", org, name],
    queryFn: ({ signal }) => read("/api/orgs/{orgName}/teams/{teamName}", { orgName: org, teamName: name }, {}, signal),
  });

export const grants = (org: string) =>
  queryOptions({
    queryKey: ["grants", org],
    queryFn: ({ signal }) => read("/api/orgs/{orgName}/grants", { orgName: org }, {}, signal),
  });

/** The roles of this server, with what they allow. They never change. */
export const roles = (org: string) =>
  queryOptions({
    queryKey: ["roles", org],
    queryFn: ({ signal }) => read("/api/orgs/{orgName}/roles", { orgName: org }, {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const sessionsOf = (org: string, user: string) =>
  queryOptions({
    queryKey: ["sessions", org, user],
    queryFn: ({ signal }) =>
      read("/api/orgs/{orgName}/members/{userLogin}/sessions", { orgName: org, userLogin: user }, {}, signal),
    retry: false,
  });

/** What somebody may do with a stack, and why; the person at the console without a login. */
/** What a name is of, as the server calls it. */
export type NameKind = "stack" | "tfstate" | "environment";

/** What somebody may do with what has this name, and why. */
export const access = (name: StackName, user: string, kind: NameKind) =>
  queryOptions({
    queryKey: ["access", name, user, kind],
    queryFn: ({ signal }) =>
      read("/api/stacks/{orgName}/{projectName}/{stackName}/access", stackPath(name), { user, kind }, signal),
    staleTime: EVERY_MINUTE,
    retry: false,
  });

/** Whose tokens: those of the organization, of the person, of a team, or of another member. */
export type TokenOwner =
  | { org: string; kind: "organization" | "personal" }
  | { org: string; kind: "team"; team: string }
  | { org: string; kind: "member"; user: string };

export const tokens = (owner: TokenOwner) =>
  infiniteQueryOptions({
    queryKey: ["tokens", owner],
    queryFn: ({ signal, pageParam }) => {
      const query = { continuationToken: pageParam || undefined };
      switch (owner.kind) {
        case "personal":
          return read("/api/user/tokens", {}, query, signal);
        case "team": {
          const names = { orgName: owner.org, teamName: owner.team };
          return read("/api/orgs/{orgName}/teams/{teamName}/tokens", names, query, signal);
        }
        case "member": {
          const names = { orgName: owner.org, userLogin: owner.user };
          return read("/api/orgs/{orgName}/members/{userLogin}/tokens", names, query, signal);
        }
        default:
          return read("/api/orgs/{orgName}/tokens", { orgName: owner.org }, query, signal);
      }
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.continuationToken ?? undefined,
  });

export const deletedStates = (org: string) =>
  queryOptions({
    queryKey: ["deleted-states", org],
    queryFn: ({ signal }) =>
      bounded<DeletedState>(LIST_MAX, async (continuationToken) => {
        const page = await read("/api/orgs/{orgName}/tfstate-removed", { orgName: org }, { continuationToken }, signal);
        return { items: page.states, next: page.continuationToken };
      }),
  });

/** What is asked of the audit trail. */
export interface AuditFilter {
  event?: string;
  user?: string;
  /** The first day, and the last one, such as 2026-11-30. */
  from?: string;
  until?: string;
}

export const audit = (org: string, filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ["audit", org, filter],
    queryFn: ({ signal, pageParam }) => {
      const query = { ...auditQuery(filter), continuationToken: pageParam || undefined };
      return read("/api/orgs/{orgName}/auditlogs/v2", { orgName: org }, query, signal);
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.continuationToken ?? undefined,
  });

export const auditQuery = (filter: AuditFilter) => ({
  eventFilter: filter.event || undefined,
  userFilter: filter.user || undefined,
  startTime: startOf(filter.from),
  endTime: endOf(filter.until),
});

const DAY = /^\d{4}-\d\d-\d\d$/;

/** The Unix time at which a day begins here. */
const startOf = (day: string | undefined) =>
  day && DAY.test(day) ? Math.floor(new Date(`${day}T00:00:00`).getTime() / 1000) : undefined;

/** That of its last second, which belongs to what is asked for. */
const endOf = (day: string | undefined) =>
  day && DAY.test(day) ? Math.floor(new Date(`${day}T23:59:59`).getTime() / 1000) : undefined;

export const eventTypes = (org: string) =>
  queryOptions({
    queryKey: ["event-types", org],
    queryFn: ({ signal }) => read("/api/orgs/{orgName}/auditlogs/event-types", { orgName: org }, {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** What the person may do in an organization. */
export const rights = (org: string) =>
  queryOptions({
    queryKey: ["rights", org],
    queryFn: ({ signal }) => read("/api/orgs/{orgName}/rights", { orgName: org }, {}, signal),
    staleTime: EVERY_MINUTE,
    refetchInterval: EVERY_MINUTE,
    retry: false,
  });

export const deletedStacks = (org: string) =>
  queryOptions({
    queryKey: ["deleted-stacks", org],
    queryFn: ({ signal }) =>
      bounded<DeletedStack>(LIST_MAX, async (continuationToken) => {
        const page = await read("/api/orgs/{orgName}/restore-stack", { orgName: org }, { continuationToken }, signal);
        return { items: page.deletedStacks, next: page.continuationToken };
      }),
  });

export const issuers = (org: string) =>
  queryOptions({
    queryKey: ["issuers", org],
    queryFn: ({ signal }) => read("/api/orgs/{orgName}/oidc/issuers", { orgName: org }, {}, signal),
  });

/** Which jobs of an issuer get which tokens. */
export const policies = (org: string, issuer: string) =>
  queryOptions({
    queryKey: ["policies", org, issuer],
    queryFn: ({ signal }) =>
      read("/api/orgs/{orgName}/auth/policies/oidcissuers/{issuerId}", { orgName: org, issuerId: issuer }, {}, signal),
  });

export const labelPolicy = (org: string) =>
  queryOptions({
    queryKey: ["label-policy", org],
    queryFn: ({ signal }) => read("/api/orgs/{orgName}/tfstate-policy", { orgName: org }, {}, signal),
  });

/** The states that break the policy for labels. */
export const compliance = (org: string) =>
  queryOptions({
    queryKey: ["label-compliance", org],
    queryFn: async ({ signal }) => {
      let checked = 0;
      const found = await bounded<NotCompliant>(LIST_MAX, async (continuationToken) => {
        const path = "/api/orgs/{orgName}/tfstate-policy/compliance";
        const page = await read(path, { orgName: org }, { continuationToken }, signal);
        checked += page.checked;
        return { items: page.states, next: page.continuationToken };
      });
      return { ...found, checked };
    },
  });

/** The schemas of the outputs of a state. */
export const schemas = (guid: string) =>
  queryOptions({
    queryKey: ["schemas", guid],
    queryFn: ({ signal }) => read("/api/tfstates/{guid}/schemas", { guid }, {}, signal),
  });

/** How the server is doing, for its admins. */
export const serverStatus = queryOptions({
  queryKey: ["server-status"],
  queryFn: ({ signal }) => read("/api/admin/status", {}, {}, signal),
  refetchInterval: EVERY_MINUTE,
});

/** What organizations store, the parts of each added up. */
export const serverStorage = queryOptions({
  queryKey: ["server-storage"],
  queryFn: async ({ signal }) => {
    const found = await bounded<StoredIn>(LIST_MAX, async (continuationToken) => {
      const page = await read("/api/admin/storage", {}, { continuationToken }, signal);
      return { items: page.organizations, next: page.continuationToken };
    });
    const sums = new Map<string, StoredIn>();
    for (const part of found.items) {
      const sum = sums.get(part.name);
      sums.set(part.name, {
        name: part.name,
        stacks: part.stacks + (sum?.stacks ?? 0),
        states: part.states + (sum?.states ?? 0),
        resources: part.resources + (sum?.resources ?? 0),
        bytes: part.bytes + (sum?.bytes ?? 0),
        unmeasured: part.unmeasured + (sum?.unmeasured ?? 0),
      });
    }
    return { items: [...sums.values()], more: found.more };
  },
});

/** Resources on one page of a state's list. */
export const STATE_RESOURCES_PAGE = 1000;

/** A resource of a Terraform state, without its values. */
export type StateResource = Got<"/api/tfstates/{guid}/resources">["resources"][number];

export const stateResources = (guid: string, filter: string, version: string | undefined, current: number) =>
  infiniteQueryOptions({
    queryKey: ["state-resources", guid, filter, version ?? "", version === undefined ? current : 0],
    queryFn: ({ signal, pageParam }) => {
      const continuationToken = pageParam || undefined;
      const query = { version, filter: filter || undefined, size: STATE_RESOURCES_PAGE, continuationToken };
      return read("/api/tfstates/{guid}/resources", { guid }, query, signal);
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.continuationToken,
  });

export type StateResourceAround = Got<"/api/tfstates/{guid}/resource">;

export const stateResource = (guid: string, address: string, version: string | undefined, current: number) =>
  queryOptions({
    queryKey: ["state-resource", guid, address, version ?? "", version === undefined ? current : 0],
    queryFn: ({ signal }) => read("/api/tfstates/{guid}/resource", { guid }, { address, version }, signal),
  });

export type StateNeighbourhood = Got<"/api/tfstates/{guid}/resource/neighbours">;

export const stateNeighbours = (
  guid: string,
  address: string,
  version: string | undefined,
  current: number,
  hops: number,
) =>
  queryOptions({
    queryKey: ["state-neighbours", guid, address, version ?? "", version === undefined ? current : 0, hops],
    queryFn: ({ signal }) =>
      read("/api/tfstates/{guid}/resource/neighbours", { guid }, { address, version, hops }, signal),
    gcTime: EVERY_MINUTE,
  });

/** A version that changed a resource. */
export type StateResourceChange = Got<"/api/tfstates/{guid}/resource/history">["entries"][number];

export const stateResourceHistory = (guid: string, address: string, current: number) =>
  infiniteQueryOptions({
    queryKey: ["state-resource-history", guid, address, current],
    queryFn: ({ signal, pageParam }) => {
      const query = { address, continuationToken: pageParam || undefined };
      return read("/api/tfstates/{guid}/resource/history", { guid }, query, signal);
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.continuationToken,
  });

/** The attributes of a resource. `masked` ones are the text `[sensitive]`. */
export type StateResourceValues = Posted<"/api/tfstates/{guid}/resource/values">;

/** An edge has places in the list of nodes. The layer of a node is `null` in or after a circle. */
export type DependencyMap = Got<"/api/orgs/{orgName}/dependency-map">;

export type MapNode = DependencyMap["nodes"][number];

export const dependencyMap = (org: string) =>
  queryOptions({
    queryKey: ["dependency-map", org],
    queryFn: ({ signal }) => read("/api/orgs/{orgName}/dependency-map", { orgName: org }, {}, signal),
    refetchInterval: EVERY_MINUTE,
  });
