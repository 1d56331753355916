// An address without a page: what it may have been, and the way on.

import { Link, useParams, useRouterState } from "@tanstack/react-router";
import { Icon } from "../ui/icons";
import { useTitle } from "../ui/parts";

type What = "search" | "policies" | "ai" | "claim";

const TEXTS: Record<What, [string, string]> = {
  search: [
    "This server does not search the resources of all stacks",
    "Find the stack or the state in their list: the page of each has its resources, with a filter.",
  ],
  policies: ["This server has no policy packs", "Run them from a folder: pulumi up --policy-pack FOLDER."],
  ai: ["This server has no assistant", "The page of an update shows its diagnostics."],
  claim: ["This server gives no accounts away", "An admin of an organization invites people."],
};

export function NotHere({ what }: { what?: What }) {
  const path = useRouterState({ select: (state) => state.location.pathname });
  const { org } = useParams({ strict: false });
  const [title, text] = what
    ? TEXTS[what]
    : ["There is nothing at this address", "It may have been renamed or deleted, or the address has a typo."];
  useTitle("Not here");
  return (
    <div className="page narrow">
      <div className="empty">
        <Icon name="warning" />
        <h1 className="empty-title">{title}</h1>
        <p className="faint">{text}</p>
        <p className="faint path">{path}</p>
        <p>
          {org === undefined ? (
            <Link className="button primary" to="/">
              To the start
            </Link>
          ) : what === "search" ? (
            <Link className="button primary" to="/$org/-/stacks" params={{ org }} search={{}}>
              Stacks and states
            </Link>
          ) : (
            <Link className="button primary" to="/$org" params={{ org }}>
              To {org}
            </Link>
          )}
        </p>
      </div>
    </div>
  );
}
