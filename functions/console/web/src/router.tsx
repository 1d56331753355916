// Every address of the console. Those that the `pulumi` CLI prints are among them.

import { type ErrorComponentProps, createRootRoute, createRoute, createRouter, lazyRouteComponent, parseSearchWith, redirect, stringifySearchWith } from "@tanstack/react-router";
import { Activity } from "./pages/activity";
import { Home, Start } from "./pages/home";
import { List } from "./pages/list";
import { Locks } from "./pages/locks";
import { NotHere } from "./pages/nothere";
import { StackOverview, StackPage } from "./pages/stack";
import { Shell } from "./shell";
import { Failure } from "./ui/parts";

// Pages that many visits do not open come when they are opened.
const definitionPages = () => import("./pages/definition");
const environmentPages = () => import("./pages/environment");
const environmentsPages = () => import("./pages/environments");
const openedPages = () => import("./pages/opened");
const organizationPages = () => import("./pages/organization");
const resourcesPages = () => import("./pages/resources");
const revisionsPages = () => import("./pages/revisions");
const settingsPages = () => import("./pages/settings");
const stackSettingsPages = () => import("./pages/stacksettings");
const statePages = () => import("./pages/state");
const stateSettingsPages = () => import("./pages/statesettings");
const updatePages = () => import("./pages/update");
const versionsPages = () => import("./pages/versions");
const stateResourcesPages = () => import("./pages/stateresources");
const dependenciesPages = () => import("./pages/dependencies");

type Search = Record<string, unknown>;

/** What an address has as a number or as `true` is one in the search too. */
const text = (value: unknown) => {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
};

interface AuditSearch {
  event?: string;
  user?: string;
  from?: string;
  until?: string;
}

interface CompareSearch {
  from?: string;
  to?: string;
}

export interface ResourcesSearch {
  q?: string;
  urn?: string;
  /** Whether the one that waits to be deleted is meant. */
  delete?: true;
  version?: string;
  show?: "history" | "neighbours";
  hops?: number;
}

interface FilterSearch {
  q?: string;
}

interface GrantsSearch extends FilterSearch {
  /** Whose rights are explained, and on what. */
  user?: string;
  /** `PROJECT/NAME`. */
  stack?: string;
  /** What the name is of; a stack without it. */
  kind?: "tfstate" | "environment";
}

interface TokensSearch {
  /** `organization`, `personal`, `team:NAME` or `user:LOGIN`. */
  of?: string;
}

const filterSearch = (search: Search): FilterSearch => ({ q: text(search.q) });

const root = createRootRoute({ component: Shell, notFoundComponent: () => <NotHere /> });

const start = createRoute({ getParentRoute: () => root, path: "/", component: Start });
const home = createRoute({ getParentRoute: () => root, path: "/$org", component: Home });

const LIST_SORTS = ["name", "changed", "oldest", "result", "resources"] as const;
const RESULTS = ["succeeded", "failed", "cancelled"] as const;
const ANSWERS = ["yes", "no"] as const;

/** One of these words. */
const oneOf = <Word extends string>(words: readonly Word[], value: unknown) => words.find((word) => word === value);

export interface ListSearch {
  q?: string;
  kind?: "stack" | "state";
  project?: string;
  sort?: (typeof LIST_SORTS)[number];
  /** How the last update of a stack ended. */
  result?: (typeof RESULTS)[number];
  /** Whether an update runs, or somebody holds or locks it. */
  used?: (typeof ANSWERS)[number];
  /** `none`, or the key of a label; by project without it. */
  group?: string;
}

const list = createRoute({
  getParentRoute: () => root,
  path: "/$org/-/stacks",
  component: List,
  validateSearch: (search: Search): ListSearch => ({
    q: text(search.q),
    kind: search.kind === "stack" || search.kind === "state" ? search.kind : undefined,
    project: text(search.project),
    sort: oneOf(LIST_SORTS, search.sort),
    result: oneOf(RESULTS, search.result),
    used: oneOf(ANSWERS, search.used),
    group: text(search.group),
  }),
});
const project = createRoute({
  getParentRoute: () => root,
  path: "/$org/$project",
  beforeLoad: ({ params }) => {
    throw redirect({ to: "/$org/-/stacks", params: { org: params.org }, search: { project: params.project } });
  },
});

const locks = createRoute({ getParentRoute: () => root, path: "/$org/-/locks", component: Locks });

const organization = createRoute({ getParentRoute: () => root, path: "/$org/-", component: lazyRouteComponent(organizationPages, "Organization") });
const members = createRoute({ getParentRoute: () => organization, path: "/members", component: lazyRouteComponent(organizationPages, "Members"), validateSearch: filterSearch });
const teams = createRoute({ getParentRoute: () => organization, path: "/teams", component: lazyRouteComponent(organizationPages, "Teams") });
const grants = createRoute({ getParentRoute: () => organization, path: "/grants", component: lazyRouteComponent(organizationPages, "Grants"), validateSearch: (search: Search): GrantsSearch => ({ q: text(search.q), user: text(search.user), stack: text(search.stack), kind: oneOf(["tfstate", "environment"] as const, search.kind) }) });
const tokens = createRoute({ getParentRoute: () => organization, path: "/tokens", component: lazyRouteComponent(organizationPages, "Tokens"), validateSearch: (search: Search): TokensSearch => ({ of: text(search.of) }) });
const issuers = createRoute({ getParentRoute: () => organization, path: "/issuers", component: lazyRouteComponent(organizationPages, "Issuers") });
const labelPolicy = createRoute({ getParentRoute: () => organization, path: "/labels", component: lazyRouteComponent(organizationPages, "LabelPolicy") });
const operator = createRoute({ getParentRoute: () => organization, path: "/operator", component: lazyRouteComponent(organizationPages, "Operator") });
const deleted = createRoute({ getParentRoute: () => organization, path: "/deleted", component: lazyRouteComponent(organizationPages, "Deleted") });
const audit = createRoute({
  getParentRoute: () => organization,
  path: "/audit",
  component: lazyRouteComponent(organizationPages, "Audit"),
  validateSearch: (search: Search): AuditSearch => ({
    event: text(search.event),
    user: text(search.user),
    from: text(search.from),
    until: text(search.until),
  }),
});

const state = createRoute({ getParentRoute: () => root, path: "/$org/-/states/$project/$state", component: lazyRouteComponent(statePages, "StatePage") });
const stateOverview = createRoute({ getParentRoute: () => state, path: "/", component: lazyRouteComponent(statePages, "StateOverview") });
const stateVersions = createRoute({
  getParentRoute: () => state,
  path: "/versions",
  component: lazyRouteComponent(statePages, "StateVersions"),
  validateSearch: (search: Search): CompareSearch => ({ from: text(search.from), to: text(search.to) }),
});

const stateSettings = createRoute({ getParentRoute: () => state, path: "/settings", component: lazyRouteComponent(stateSettingsPages, "StateSettings") });

export interface EnvironmentsSearch {
  q?: string;
  project?: string;
  changed?: "week" | "not-month" | "not-year";
  sort?: "name" | "changed";
  /** `none`, or the name of a tag; by project without it. */
  group?: string;
}

const environments = createRoute({
  getParentRoute: () => root,
  path: "/$org/-/environments",
  component: lazyRouteComponent(environmentsPages, "Environments"),
  validateSearch: ({ q, project, changed, sort, group }: Search): EnvironmentsSearch => ({
    q: text(q),
    project: text(project),
    changed: changed === "week" || changed === "not-month" || changed === "not-year" ? changed : undefined,
    sort: sort === "changed" ? sort : undefined,
    group: text(group),
  }),
});

interface RevisionSearch {
  version?: string;
}

const environment = createRoute({ getParentRoute: () => root, path: "/$org/esc/$project/$env", component: lazyRouteComponent(environmentPages, "EnvironmentPage") });
const definition = createRoute({
  getParentRoute: () => environment,
  path: "/",
  component: lazyRouteComponent(definitionPages, "DefinitionPage"),
  // The CLI also names drafts here, which this server does not have.
  validateSearch: (search: Search): RevisionSearch => ({
    version: /^[1-9]\d*$/.test(text(search.version) ?? "") ? text(search.version) : undefined,
  }),
});
const environmentValues = createRoute({ getParentRoute: () => environment, path: "/values", component: lazyRouteComponent(openedPages, "Values"), validateSearch: filterSearch });
const revisions = createRoute({
  getParentRoute: () => environment,
  path: "/revisions",
  component: lazyRouteComponent(revisionsPages, "Revisions"),
  validateSearch: (search: Search): CompareSearch => ({ from: text(search.from), to: text(search.to) }),
});
const environmentSettings = createRoute({ getParentRoute: () => environment, path: "/settings", component: lazyRouteComponent(settingsPages, "Settings") });

const stack = createRoute({ getParentRoute: () => root, path: "/$org/$project/$stack", component: StackPage });
const overview = createRoute({ getParentRoute: () => stack, path: "/", component: StackOverview });
const resources = createRoute({
  getParentRoute: () => stack,
  path: "/resources",
  component: lazyRouteComponent(resourcesPages, "Resources"),
  validateSearch: (search: Search): ResourcesSearch => ({
    q: text(search.q),
    urn: text(search.urn),
    delete: search.delete === true || undefined,
    version: /^[1-9]\d*$/.test(text(search.version) ?? "") ? text(search.version) : undefined,
    show: search.show === "history" || search.show === "neighbours" ? search.show : undefined,
    hops: search.hops === 2 || search.hops === 3 ? search.hops : undefined,
  }),
});
const activity = createRoute({ getParentRoute: () => stack, path: "/updates", component: Activity });

export interface UpdateSearch {
  show?: "diagnostics" | "all" | "timeline";
  /** The order of the timeline; as it began without it. */
  sort?: "slowest";
  urn?: string;
  /** Letters of the resources that are shown. */
  q?: string;
}

const updateSearch = (search: Search): UpdateSearch => ({
  show:
    search.show === "diagnostics" || search.show === "all" || search.show === "timeline" ? search.show : undefined,
  sort: search.sort === "slowest" ? search.sort : undefined,
  urn: text(search.urn),
  q: text(search.q),
});
const update = createRoute({
  getParentRoute: () => stack,
  path: "/updates/$version",
  component: lazyRouteComponent(updatePages, "UpdatePage"),
  validateSearch: updateSearch,
});
const preview = createRoute({
  getParentRoute: () => stack,
  path: "/previews/$id",
  component: lazyRouteComponent(updatePages, "PreviewPage"),
  validateSearch: updateSearch,
});
const versions = createRoute({
  getParentRoute: () => stack,
  path: "/versions",
  component: lazyRouteComponent(versionsPages, "Versions"),
  validateSearch: (search: Search): CompareSearch => ({ from: text(search.from), to: text(search.to) }),
});
const options = createRoute({ getParentRoute: () => stack, path: "/settings/options", component: lazyRouteComponent(stackSettingsPages, "StackSettings") });
const settings = createRoute({
  getParentRoute: () => stack,
  path: "/settings",
  beforeLoad: ({ params }) => {
    throw redirect({ to: "/$org/$project/$stack/settings/options", params });
  },
});

export interface StateResourcesSearch {
  q?: string;
  address?: string;
  version?: string;
  hops?: number;
}

const stateResources = createRoute({
  getParentRoute: () => state,
  path: "/resources",
  component: lazyRouteComponent(stateResourcesPages, "StateResources"),
  validateSearch: (search: Search): StateResourcesSearch => ({
    q: text(search.q),
    address: text(search.address),
    version: /^([1-9]\d*|[0-9a-f]{32})$/.test(text(search.version) ?? "") ? text(search.version) : undefined,
    hops: search.hops === 2 || search.hops === 3 ? search.hops : undefined,
  }),
});

export interface DependenciesSearch {
  q?: string;
  /** Those that may have to run again, and what they read. */
  show?: "stale";
}

const dependencies = createRoute({
  getParentRoute: () => root,
  path: "/$org/-/dependencies",
  component: lazyRouteComponent(dependenciesPages, "Dependencies"),
  validateSearch: (search: Search): DependenciesSearch => ({
    q: text(search.q),
    show: search.show === "stale" ? "stale" : undefined,
  }),
});

// Addresses that clients know, of what this console does not show. Projects may have the same names, so they are complete.
const elsewhere = [
  createRoute({ getParentRoute: () => root, path: "/$org/resources", component: () => <NotHere what="search" /> }),
  createRoute({ getParentRoute: () => root, path: "/$org/insights/policypacks/$name/$tag", component: () => <NotHere what="policies" /> }),
  createRoute({ getParentRoute: () => root, path: "/$org/neo/tasks/$task", component: () => <NotHere what="ai" /> }),
  createRoute({ getParentRoute: () => root, path: "/claim/$", component: () => <NotHere what="claim" /> }),
];

const tree = root.addChildren([
  start,
  home,
  list,
  locks,
  organization.addChildren([members, teams, grants, tokens, audit, deleted, issuers, labelPolicy, operator]),
  environments,
  environment.addChildren([definition, environmentValues, revisions, environmentSettings]),
  state.addChildren([stateOverview, stateVersions, stateResources, stateSettings]),
  stack.addChildren([overview, resources, activity, update, preview, versions, options, settings]),
  project,
  dependencies,
  ...elsewhere,
]);

/** A page that broke. The rest of the console works on. */
function Broken({ error, reset }: ErrorComponentProps) {
  return (
    <div className="page">
      <Failure error={error} again={reset} />
    </div>
  );
}

export const router = createRouter({
  routeTree: tree,
  // As people write it: `?from=1`, and not `?from=%221%22`.
  parseSearch: parseSearchWith((value) => value),
  stringifySearch: stringifySearchWith(JSON.stringify),
  scrollRestoration: true,
  defaultPreload: false,
  defaultErrorComponent: Broken,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
