// The settings of a stack: its tags, its name, its organization, and its end.

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import type { Stack, StackName } from "../api/queries";
import { plain } from "../format";
import { useRights, useRightsOnStack } from "../rights";
import { Act, Card, Confirm, Line, Loaded, More, Select, Time, useTitle } from "../ui/parts";
import { useStackName } from "./stack";
import { Setting, TagsCard, TypedName } from "./tagparts";

const STACK = "/api/stacks/{orgName}/{projectName}/{stackName}";

interface OfDialog {
  name: StackName;
  onClose: () => void;
}

function Rename({ name, onClose }: OfDialog) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [project, setProject] = useState(name.project);
  const [stack, setStack] = useState(name.stack);
  const [newProject, newName] = [project.trim(), stack.trim()];
  const run = async () => {
    await change("POST", `${STACK}/rename`, queries.stackPath(name), { newName, newProject });
    await navigate({
      ignoreBlocker: true,
      to: "/$org/$project/$stack/settings/options",
      params: { org: name.org, project: newProject, stack: newName },
      replace: true,
    });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title={`Rename ${name.project}/${name.stack}?`}
      action="Rename it"
      isDangerous={false}
      isReady={newProject !== "" && newName !== "" && (newProject !== name.project || newName !== name.stack)}
      onClose={onClose}
      run={run}
    >
      <p>
        The old name leads to it until another stack takes that name. Rename <code>Pulumi.{name.stack}.yaml</code> too,
        and references of other stacks to it. Grants on exactly this name follow it, patterns do not.
      </p>
      <Line label="Project" value={project} onChange={setProject} />
      <Line label="Stack" value={stack} onChange={setStack} />
    </Confirm>
  );
}

function Transfer({ name, onClose }: OfDialog) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const user = useQuery(queries.user);
  const others = (user.data?.organizations ?? []).map((one) => one.githubLogin).filter((org) => org !== name.org);
  const [chosen, choose] = useState("");
  const toOrg = chosen || others[0] || "";
  const run = async () => {
    await change("POST", `${STACK}/transfer`, queries.stackPath(name), { toOrg });
    await navigate({ ignoreBlocker: true, to: "/$org/$project/$stack", params: { ...name, org: toOrg }, replace: true });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title={`Transfer ${name.project}/${name.stack} to another organization?`}
      action="Transfer it"
      isReady={toOrg !== ""}
      onClose={onClose}
      run={run}
    >
      {others.length === 0 ? (
        <p>You are in no other organization.</p>
      ) : (
        <>
          <p>
            It takes its versions, its secrets and its tags along. Who may use it is decided there: grants of {name.org}{" "}
            do not reach it any more.
          </p>
          <Select
            label="To"
            value={toOrg}
            onChange={choose}
            options={others.map((org): [string, string] => [org, org])}
          />
        </>
      )}
    </Confirm>
  );
}

function Delete({ name, stack, onClose }: OfDialog & { stack: Stack }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [typed, type] = useState("");
  const whole = `${name.project}/${name.stack}`;
  const run = async () => {
    await change("DELETE", STACK, queries.stackPath(name), undefined, { force: true });
    await navigate({ ignoreBlocker: true, to: "/$org/-/deleted", params: { org: name.org }, replace: true });
    client.removeQueries({ queryKey: ["stack", name] });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title={`Delete ${whole}?`}
      action="Delete it"
      isReady={typed.trim() === whole}
      onClose={onClose}
      run={run}
    >
      <p>
        Nothing in the cloud is deleted: run <code>pulumi destroy</code> before, or its resources stay without a stack
        that knows them. {stack.version === 0 && "It was never updated."} Until the server erases it, an admin undeletes it
        on the page Deleted, with its versions and its secrets.
      </p>
      <TypedName name={whole} value={typed} onChange={type} />
    </Confirm>
  );
}

/** The renames that the history has, newest first. */
function FormerNames({ name }: { name: StackName }) {
  const history = useInfiniteQuery(queries.history(name));
  const renames = (history.data?.pages ?? [])
    .flatMap((page) => page.updates)
    .filter(({ info }) => info.kind === "rename");
  return (
    <Card title="Former names">
      <Loaded of={history} rows={2}>
        {() =>
          renames.length === 0 ? (
            <p className="none">
              {history.hasNextPage ? "The newest versions have this name." : "It had no other name."}
            </p>
          ) : (
            <ul className="plain-list">
              {renames.map(({ version, info, requestedBy }) => (
                <li key={version} className="list-row">
                  <Link
                    className="strong"
                    to="/$org/$project/$stack/updates/$version"
                    params={{ ...name, version: String(version) }}
                  >
                    {plain(info.message)}
                  </Link>
                  <span className="faint">
                    by {requestedBy.githubLogin}, <Time at={info.endTime} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {history.hasNextPage && (
        <More isLoading={history.isFetchingNextPage} onPress={() => void history.fetchNextPage()} />
      )}
    </Card>
  );
}

export function StackSettings() {
  const name = useStackName();
  const stack = useQuery(queries.stack(name)).data;
  const may = useRightsOnStack(name);
  const client = useQueryClient();
  const [asking, ask] = useState<"rename" | "transfer" | "delete">();
  const { maySomewhere } = useRights(name.org);
  useTitle("Settings", `${name.project}/${name.stack}`);
  if (!stack) return null;
  const close = () => ask(undefined);
  const names = queries.stackPath(name);
  const again = () => client.invalidateQueries({ queryKey: ["stack", name] });
  return (
    <>
      <TagsCard
        title="Tags"
        noun="tag"
        of={Object.entries(stack.tags).sort(([a], [b]) => a.localeCompare(b))}
        about="pulumi stack ls --tag finds stacks by them."
        canEdit={may("apply")}
        onSet={async (tag, value, isNew) => {
          if (isNew) await change("POST", `${STACK}/tags`, names, { name: tag, value });
          else await change("PATCH", `${STACK}/tags/{tagName}`, { ...names, tagName: tag }, { name: tag, value });
          await again();
        }}
        onRemove={async (tag) => {
          await change("DELETE", `${STACK}/tags/{tagName}`, { ...names, tagName: tag });
          await again();
        }}
      />
      <FormerNames name={name} />
      <Card title="Name, organization and end">
        {may("member") ? (
          <>
            <Setting title="Rename" about="Another name, or another project.">
              <Button className="button small" onPress={() => ask("rename")}>
                Rename
              </Button>
            </Setting>
            <Setting
              title="Transfer"
              about={stack.protection ? "It is protected, so it stays." : "To another organization of yours."}
            >
              <Act className="button small" onPress={() => ask("transfer")} isOff={Boolean(stack.protection)}>
                Transfer
              </Act>
            </Setting>
            <Setting
              title="Delete"
              about={
                stack.protection
                  ? "It is protected: lift that first."
                  : stack.currentOperation
                    ? "An update holds it: wait for its end, or cancel it."
                    : "The server keeps it for a time, in which it can be undeleted."
              }
            >
              <Act
                className="button small bad"
                onPress={() => ask("delete")}
                isOff={Boolean(stack.protection || stack.currentOperation)}
              >
                Delete
              </Act>
            </Setting>
          </>
        ) : (
          <p className="none">
            Renaming, transferring and deleting need the role member on this stack.
            {maySomewhere("admin") && " You can give it on the page Grants."}
          </p>
        )}
      </Card>
      {asking === "rename" && <Rename name={name} onClose={close} />}
      {asking === "transfer" && <Transfer name={name} onClose={close} />}
      {asking === "delete" && <Delete name={name} stack={stack} onClose={close} />}
    </>
  );
}
