// The rules for the labels of states, and the states that break them.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import type { LabelPolicy as Policy } from "../api/queries";
import { number, visible } from "../format";
import { useRights } from "../rights";
import { Card, Confirm, Empty, Facts, Line, Loaded, Notice, Table, Time, useTitle } from "../ui/parts";
import { useOrg } from "./orgparts";

const POLICY = "/api/orgs/{orgName}/tfstate-policy";

const listOf = (text: string) => [...new Set(text.split(/[\s,]+/).filter(Boolean))].sort();

const joined = (keys: string[]) => keys.map(visible).join(", ");

/** A value of a label as it was typed: a number, a truth or a text, which may be in quotes. */
function valueOf(typed: string): unknown {
  if (typed === "true" || typed === "false") return typed === "true";
  if (typed.startsWith('"')) return JSON.parse(typed);
  return typed !== "" && String(Number(typed)) === typed ? Number(typed) : typed;
}

/** A value as it can be typed. A text that would be read as something else is in quotes. */
function typedOf(value: unknown): string {
  if (typeof value !== "string") return String(value);
  return /^$|[",:]/.test(value) || value.trim() !== value || valueOf(value) !== value ? JSON.stringify(value) : value;
}

// A colon or a comma in quotes separates nothing.
const ALLOWED = /^([^"]+):((?:"(?:[^"\\]|\\.)*"|[^":])*)$/;
const VALUE = /"(?:[^"\\]|\\.)*"|[^,"]+/g;

/** `key: value, value` on each line. */
function allowedOf(text: string): Record<string, unknown[]> | undefined {
  const allowed: Record<string, unknown[]> = {};
  for (const line of text.split("\n").map((line) => line.trim()).filter(Boolean)) {
    const [, key = "", list = ""] = ALLOWED.exec(line) ?? [];
    const values = (list.match(VALUE) ?? []).map((value) => value.trim()).filter(Boolean);
    if (key.trim() === "" || values.length === 0) return undefined;
    try {
      allowed[key.trim()] = values.map(valueOf);
    } catch {
      return undefined;
    }
  }
  return allowed;
}

function Edit({ org, version, policy, onClose }: { org: string; version: number; policy: Policy; onClose: () => void }) {
  const client = useQueryClient();
  const [required, setRequired] = useState(policy.requiredKeys.join(", "));
  const [allowed, setAllowed] = useState(policy.allowedKeys?.join(", ") ?? "");
  const [final, setFinal] = useState(policy.immutableKeys.join(", "));
  const [reserved, setReserved] = useState(policy.reservedPrefixes.join(", "));
  const [values, setValues] = useState(
    Object.entries(policy.allowedValues)
      .map(([key, values]) => `${key}: ${values.map(typedOf).join(", ")}`)
      .join("\n"),
  );
  const allowedValues = allowedOf(values);
  const run = async () => {
    const keys = listOf(allowed);
    const next = {
      ...policy,
      requiredKeys: listOf(required),
      allowedKeys: keys.length > 0 ? keys : undefined,
      immutableKeys: listOf(final),
      reservedPrefixes: listOf(reserved),
      allowedValues,
    };
    await change("PUT", POLICY, { orgName: org }, { version, policy: next });
    await client.invalidateQueries({ queryKey: ["label-policy", org] });
    await client.invalidateQueries({ queryKey: ["label-compliance", org] });
  };
  return (
    <Confirm
      title="Change the policy for labels?"
      action="Change the policy"
      isDangerous={false}
      isReady={allowedValues !== undefined}
      onClose={onClose}
      run={run}
    >
      <p>It decides about labels that are set from now on. No label that a state has is changed.</p>
      <Line label="Required keys" value={required} onChange={setRequired} hint="With commas between them." />
      <Line label="Allowed keys" value={allowed} onChange={setAllowed} hint="Empty for all keys." />
      <Line label="Keys whose first value is final" value={final} onChange={setFinal} />
      <Line label="Reserved prefixes of keys" value={reserved} onChange={setReserved} />
      <label className="field">
        <span>Allowed values</span>
        <textarea
          rows={3}
          spellCheck={false}
          value={values}
          onChange={(event) => setValues(event.target.value)}
          placeholder="env: dev, prod"
        />
        <span className="faint">
          A key, a colon, and its values, on each line. A text like "5" or "a, b" is in quotes. Other keys take any value.
        </span>
      </label>
    </Confirm>
  );
}

export function LabelPolicy() {
  const org = useOrg();
  const policy = useQuery(queries.labelPolicy(org));
  const report = useQuery(queries.compliance(org));
  const { may } = useRights(org);
  const [isEditing, setEditing] = useState(false);
  useTitle("Policy for labels", org);
  const keys = (of: string[], none: string) => (of.length === 0 ? none : <code>{joined(of)}</code>);
  return (
    <>
      <h1>Policy for labels</h1>
      <Card
        title="Policy"
        actions={
          may("member") &&
          policy.data && (
            <Button className="button small" onPress={() => setEditing(true)}>
              Change
            </Button>
          )
        }
      >
        <Loaded of={policy}>
          {({ policy, version, changed, changedBy }) => (
            <div className="pad">
              {version === 0 && <p>There is none, so states may have any labels.</p>}
              <Facts
                of={[
                  ["Required keys", keys(policy.requiredKeys, "none")],
                  ["Allowed keys", policy.allowedKeys ? keys(policy.allowedKeys, "none") : "all"],
                  [
                    "Allowed values",
                    Object.keys(policy.allowedValues).length === 0
                      ? "all"
                      : Object.entries(policy.allowedValues).map(([key, values]) => (
                          <div key={key}>
                            <code>
                              {visible(key)}: {joined(values.map(String))}
                            </code>
                          </div>
                        )),
                  ],
                  ["First value is final", keys(policy.immutableKeys, "of no key")],
                  ["Reserved prefixes", keys(policy.reservedPrefixes, "none")],
                  ["Labels of a state", `at most ${number(policy.maxKeys)}`],
                  ["Text of a label", `at most ${number(policy.maxValueLength)} bytes`],
                  ...(changed
                    ? ([
                        [
                          "Changed",
                          <span key="c">
                            <Time at={changed} /> by {changedBy}
                          </span>,
                        ],
                      ] as [string, React.ReactNode][])
                    : []),
                ]}
              />
            </div>
          )}
        </Loaded>
      </Card>
      <Card title="States that break it" count={report.data?.items.length}>
        <Loaded of={report}>
          {({ items, checked, more }) => (
            <>
              {items.length === 0 ? (
                <Empty icon="check" title={`None of ${number(checked)} states breaks it`} />
              ) : (
                <Table label="States that break the policy" head={["State", "What is wrong"]}>
                  {items.map(({ id, project, state, violations }) => (
                    <tr key={id}>
                      <td>
                        <Link
                          className="strong"
                          to="/$org/-/states/$project/$state/settings"
                          params={{ org, project, state }}
                        >
                          {project}/{state}
                        </Link>
                      </td>
                      <td className="what">
                        {violations.map(({ message, rule, key }) => (
                          <div key={`${rule} ${key ?? ""}`}>{visible(message)}</div>
                        ))}
                      </td>
                    </tr>
                  ))}
                </Table>
              )}
              {more && <Notice>Here are those of the first {number(checked)} states.</Notice>}
            </>
          )}
        </Loaded>
      </Card>
      {isEditing && policy.data && (
        <Edit org={org} version={policy.data.version} policy={policy.data.policy} onClose={() => setEditing(false)} />
      )}
    </>
  );
}
