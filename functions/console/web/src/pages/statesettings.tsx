// The settings of a Terraform state: its labels, the schemas of its outputs, its rules, its name, and its end.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import type { State } from "../api/queries";
import { duration, visible } from "../format";
import { useRightsOnState } from "../rights";
import { Act, Badge, Card, Code, Confirm, Line, Loaded, Table, Time, useTitle } from "../ui/parts";
import { WhoMay } from "./orgparts";
import { Setting, TagsCard, TypedName } from "./tagparts";

const ROUTE = "/$org/-/states/$project/$state";
const STATE = "/api/tfstates/{guid}";

interface OfDialog {
  org: string;
  state: State;
  onClose: () => void;
}

/** A label is text, a number or a truth. What is typed as one of the latter is one. */
function labelOf(typed: string): string | number | boolean {
  if (typed === "true" || typed === "false") return typed === "true";
  return /^-?\d+(\.\d+)?$/.test(typed) && String(Number(typed)) === typed ? Number(typed) : typed;
}

function Rename({ org, state, onClose }: OfDialog) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [project, setProject] = useState(state.project);
  const [name, setName] = useState(state.state);
  const to = { project: project.trim(), state: name.trim() };
  const run = async () => {
    await change("PATCH", STATE, { guid: state.id }, to);
    await navigate({ ignoreBlocker: true, to: `${ROUTE}/settings`, params: { org, ...to }, replace: true });
    await client.invalidateQueries();
  };
  return (
    <Confirm
      title={`Rename ${state.project}/${state.state}?`}
      action="Rename it"
      isDangerous={false}
      isReady={to.project !== "" && to.state !== "" && (to.project !== state.project || to.state !== state.state)}
      onClose={onClose}
      run={run}
    >
      <p>Clients with the old name still find it, until another state takes that name. Its ID stays.</p>
      <Line label="Project" value={project} onChange={setProject} />
      <Line label="State" value={name} onChange={setName} />
    </Confirm>
  );
}

function Delete({ org, state, onClose }: OfDialog) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [typed, type] = useState("");
  const whole = `${state.project}/${state.state}`;
  const run = async () => {
    await change("DELETE", STATE, { guid: state.id }, undefined, { force: true });
    await navigate({ ignoreBlocker: true, to: "/$org/-/deleted", params: { org }, replace: true });
    client.removeQueries({ queryKey: ["state", org, state.project, state.state] });
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
        Nothing in the cloud is deleted: run <code>tofu destroy</code> before, or its resources stay without a state that
        knows them. Until the server erases it, it can be undeleted on the page Deleted, with its versions.
      </p>
      <TypedName name={whole} value={typed} onChange={type} />
    </Confirm>
  );
}

function Schemas({ state }: { state: State }) {
  const schemas = useQuery(queries.schemas(state.id));
  return (
    <Card title="Schemas of outputs" count={schemas.data?.outputs?.length}>
      <Loaded of={schemas} rows={2}>
        {({ outputs = [], infer }) => (
          <>
            {outputs.length === 0 ? (
              <p className="none">
                It has none.{" "}
                {infer ? (
                  "The server makes them from the next write."
                ) : (
                  <>
                    <code>statewright state set-schema</code> sets one.
                  </>
                )}
              </p>
            ) : (
              <Table label="Schemas of outputs" head={["Output", "Schema", "Fits", "Changed"]}>
                {outputs.map(({ name, schema, validity, changed, changedBy, inferredFrom }) => (
                  <tr key={name}>
                    <th scope="row">
                      <code>{visible(name)}</code>
                    </th>
                    <td>
                      <Code value={schema} />
                      {typeof inferredFrom === "number" && (
                        <div className="faint">made from version {inferredFrom}</div>
                      )}
                    </td>
                    <td>
                      {validity?.status === "valid" && <Badge tone="good">yes</Badge>}
                      {validity?.status === "invalid" && (
                        <>
                          <Badge tone="bad">no</Badge> <span className="faint">{validity.message}</span>
                        </>
                      )}
                      {(!validity || validity.status === "not_validated" || validity.status === "error") && (
                        <span className="faint">not known</span>
                      )}
                    </td>
                    <td>
                      <Time at={changed} />
                      <div className="faint">by {changedBy}</div>
                    </td>
                  </tr>
                ))}
              </Table>
            )}
            <p className="foot">No write is refused because of a schema.</p>
          </>
        )}
      </Loaded>
    </Card>
  );
}

/** The rules for those who write. */
function Rules({ state, canEdit }: { state: State; canEdit: boolean }) {
  const client = useQueryClient();
  const [asked, ask] = useState<{ name: string; about: string; policy: State["policy"] }>();
  const { policy } = state;
  const rule = (name: string, isOn: boolean, about: string, policy: State["policy"]) => (
    <Setting title={`${name}: ${isOn ? "yes" : "no"}`} about={about}>
      {canEdit && (
        <Button
          className="button small"
          aria-label={`${isOn ? "Turn off" : "Turn on"}: ${name}`}
          onPress={() => ask({ name, about, policy })}
        >
          {isOn ? "Turn off" : "Turn on"}
        </Button>
      )}
    </Setting>
  );
  const expires = policy.lockExpiresAfterSeconds;
  return (
    <Card title="Rules for those who write">
      {rule("Needs the lock", policy.locksRequired, "A write without the lock is refused.", {
        ...policy,
        locksRequired: !policy.locksRequired,
      })}
      {rule("Strict", policy.strict, "A write with a lower serial or another lineage is refused.", {
        ...policy,
        strict: !policy.strict,
      })}
      {typeof expires === "number" && (
        <Setting title={`Locks end after ${duration(expires)}`} about="Then somebody else can take the lock over.">
          {null}
        </Setting>
      )}
      {asked && (
        <Confirm
          title={`Change “${asked.name}”?`}
          action="Change it"
          isDangerous={false}
          onClose={() => ask(undefined)}
          run={async () => {
            await change("PATCH", STATE, { guid: state.id }, { policy: asked.policy });
            await client.invalidateQueries();
          }}
        >
          <p>{asked.about} The server keeps what it refuses.</p>
        </Confirm>
      )}
    </Card>
  );
}

export function StateSettings() {
  const { org, project, state: name } = useParams({ from: ROUTE });
  const state = useQuery(queries.stateByName(org, project, name)).data;
  const may = useRightsOnState(org, state);
  const client = useQueryClient();
  const [asking, ask] = useState<"rename" | "delete">();
  useTitle("Settings", `${project}/${name}`);
  if (!state) return null;
  const close = () => ask(undefined);
  const setLabels = async (labels: Record<string, unknown>) => {
    await change("PATCH", STATE, { guid: state.id }, { labels });
    await client.invalidateQueries();
  };
  return (
    <>
      <TagsCard
        title="Labels"
        noun="label"
        of={Object.entries(state.labels ?? {}).map(([key, value]): [string, string] => [key, String(value)])}
        about="The list of states finds and groups by labels."
        canEdit={may("apply")}
        onSet={(key, value, isNew) => {
          // A text stays one, also if it reads like a number.
          const isText = !isNew && typeof state.labels?.[key] === "string";
          return setLabels({ [key]: isText ? value : labelOf(value) });
        }}
        onRemove={(key) => setLabels({ [key]: null })}
      />
      <Schemas state={state} />
      <Rules state={state} canEdit={may("member")} />
      <WhoMay org={org} kind="tfstate" name={`${project}/${name}`} isAdmin={may("admin")} />
      <Card title="Name and end">
        {may("member") ? (
          <>
            <Setting title="Rename" about="Another name, or another project.">
              <Button className="button small" onPress={() => ask("rename")}>
                Rename
              </Button>
            </Setting>
            <Setting
              title="Delete"
              about={
                state.protection
                  ? "It is protected: lift that first."
                  : state.lock
                    ? "Somebody holds its lock: unlock it first."
                    : "The server keeps it for a time, in which it can be undeleted."
              }
            >
              <Act
                className="button small bad"
                onPress={() => ask("delete")}
                isOff={Boolean(state.protection || state.lock)}
              >
                Delete
              </Act>
            </Setting>
          </>
        ) : (
          <p className="none">Renaming and deleting need the role member on this state.</p>
        )}
      </Card>
      {asking === "rename" && <Rename org={org} state={state} onClose={close} />}
      {asking === "delete" && <Delete org={org} state={state} onClose={close} />}
    </>
  );
}
