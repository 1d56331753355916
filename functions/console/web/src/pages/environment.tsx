// One environment: what is around its pages, and what several of them have.

import { useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useParams } from "@tanstack/react-router";
import { useMemo } from "react";
import { type Definition, address, readDefinition, sendDefinition } from "../api/client";
import * as queries from "../api/queries";
import type { EnvironmentName } from "../api/queries";
import { type Line } from "../definitions";
import { visible } from "../format";
import { Confirm, Notice, Top } from "../ui/parts";

const { ENVIRONMENT, environmentPath } = queries;

export const ROUTE = "/$org/esc/$project/$env";

export function useName(): EnvironmentName {
  const { org, project, env } = useParams({ from: ROUTE });
  return useMemo(() => ({ org, project, env }), [org, project, env]);
}

/** Everything that depends on the definition. Other environments may be imported by this one now. */
export function useReadAgain(name: EnvironmentName) {
  const client = useQueryClient();
  return () =>
    Promise.all([
      ...["definition", "revisions", "revision-tags"].map((key) => client.invalidateQueries({ queryKey: [key, name] })),
      client.invalidateQueries({ queryKey: ["imported-by"] }),
    ]);
}

export function EnvironmentPage() {
  const name = useName();
  return (
    <div className="page">
      <Top
        above={
          <Link to="/$org/-/environments" params={{ org: name.org }} search={{ project: name.project }}>
            {name.project}
          </Link>
        }
        icon="environment"
        name={name.env}
      />
      <nav className="tabs" aria-label="Environment">
        <Link to={ROUTE} params={name} activeOptions={{ exact: true, includeSearch: false }}>
          Definition
        </Link>
        <Link to={`${ROUTE}/values`} params={name}>
          Opened values
        </Link>
        <Link to={`${ROUTE}/revisions`} params={name} activeOptions={{ includeSearch: false }}>
          Revisions
        </Link>
        <Link to={`${ROUTE}/settings`} params={name}>
          Tags and settings
        </Link>
      </nav>
      <Outlet />
    </div>
  );
}

/** Equal lines that are shown around those that differ. */
const AROUND = 3;

export function Lines({ of }: { of: Line[] }) {
  const near = useMemo(() => {
    const shown = new Set<number>();
    for (const [index, { how }] of of.entries()) {
      if (how === "same") continue;
      for (let at = index - AROUND; at <= index + AROUND; at++) shown.add(at);
    }
    return shown;
  }, [of]);
  return (
    <div className="text-lines" role="region" aria-label="Lines that differ" tabIndex={0}>
      <ol>
        {of.map((line, index) =>
          near.has(index) ? (
            <li key={index} className={line.how}>
              <span className="text-number" aria-hidden="true">
                {line.number}
              </span>
              <span className="sign" aria-hidden="true">
                {{ same: " ", added: "+", removed: "−" }[line.how]}
              </span>
              {line.how !== "same" && <span className="unseen">{line.how}: </span>}
              <code>{visible(line.text)}</code>
            </li>
          ) : near.has(index - 1) || (index === 0 && near.size > 0) ? (
            <li key={index} className="skipped">
              …
            </li>
          ) : null,
        )}
      </ol>
    </div>
  );
}

/** What the server gives for a retracted revision is another one. */
export function InItsPlace({ asked, found }: { asked: number; found: Definition | undefined }) {
  if (!found || found.revision === asked) return null;
  return (
    <Notice tone="warn">
      Revision {asked} is retracted. Revision {found.revision} is shown in its place.
    </Notice>
  );
}

function useRestore(name: EnvironmentName) {
  const readAgain = useReadAgain(name);
  return async (revision: number) => {
    const names = environmentPath(name);
    const url = address(ENVIRONMENT, names);
    const old = await readDefinition(address(`${ENVIRONMENT}/versions/{version}`, { ...names, version: String(revision) }));
    const { etag } = await readDefinition(url);
    await sendDefinition("PATCH", url, old.text, { etag });
    await readAgain();
  };
}

export function Restore({ name, revision, onClose }: { name: EnvironmentName; revision: number; onClose: () => void }) {
  const restore = useRestore(name);
  const navigate = useNavigate();
  return (
    <Confirm
      title={`Make revision ${revision} the next one?`}
      action="Restore it"
      onClose={onClose}
      run={async () => {
        await restore(revision);
        await navigate({ ignoreBlocker: true, to: `${ROUTE}/revisions`, params: name });
      }}
    >
      <p>
        The definition becomes what it was in revision {revision}, as a new revision. All revisions stay. Stacks that
        use this environment get its values with their next update.
      </p>
    </Confirm>
  );
}
