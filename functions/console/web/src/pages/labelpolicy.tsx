// The rules for the labels of states, and the states that break them.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "react-aria-components";
import { ApiError, type Got, change } from "../api/client";
import * as queries from "../api/queries";
import type { LabelPolicy as Policy } from "../api/queries";
import { number, visible } from "../format";
import { useRights } from "../rights";
import { Card, Code, Confirm, Empty, Facts, Line, Loaded, Notice, Table, Time, useTitle } from "../ui/parts";
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

/** The policy as it is typed. */
interface Typed {
  required: string;
  allowed: string;
  final: string;
  reserved: string;
  values: string;
}

const TITLES: Record<keyof Typed, string> = {
  required: "Required keys",
  allowed: "Allowed keys",
  final: "Keys whose first value is final",
  reserved: "Reserved prefixes of keys",
  values: "Allowed values",
};

const FIELDS = Object.keys(TITLES) as (keyof Typed)[];

const typedPolicy = (policy: Policy): Typed => ({
  required: policy.requiredKeys.join(", "),
  allowed: policy.allowedKeys?.join(", ") ?? "",
  final: policy.immutableKeys.join(", "),
  reserved: policy.reservedPrefixes.join(", "),
  values: Object.entries(policy.allowedValues)
    .map(([key, values]) => `${key}: ${values.map(typedOf).join(", ")}`)
    .join("\n"),
});

/** The policy with what was typed. A field that the person did not change stays exactly as it is. */
function withTyped(policy: Policy, typed: Typed, allowedValues: Record<string, unknown[]>) {
  const before = typedPolicy(policy);
  const isNew = (field: keyof Typed) => typed[field] !== before[field];
  const keys = listOf(typed.allowed);
  return {
    ...policy,
    ...(isNew("required") && { requiredKeys: listOf(typed.required) }),
    ...(isNew("allowed") && { allowedKeys: keys.length > 0 ? keys : undefined }),
    ...(isNew("final") && { immutableKeys: listOf(typed.final) }),
    ...(isNew("reserved") && { reservedPrefixes: listOf(typed.reserved) }),
    ...(isNew("values") && { allowedValues }),
  };
}

type Stored = Got<typeof POLICY>;

/** What somebody else changed while the form was open. */
interface Meanwhile {
  of: Stored;
  /** The fields that only they changed: the form has them now. */
  taken: (keyof Typed)[];
  /** The fields that the person changed too: the form has what the person typed. */
  kept: (keyof Typed)[];
}

const listed = (fields: (keyof Typed)[]) => fields.map((field) => TITLES[field]).join(", ");

function Edit({ org, of, onClose }: { org: string; of: Stored; onClose: () => void }) {
  const client = useQueryClient();
  // The page reads the policy again now and then. The form is about the one with which it was opened.
  const [base, setBase] = useState(of);
  const [typed, setTyped] = useState(() => typedPolicy(of.policy));
  const [meanwhile, setMeanwhile] = useState<Meanwhile>();
  const set = (field: keyof Typed) => (text: string) => setTyped({ ...typed, [field]: text });
  const allowedValues = allowedOf(typed.values);
  const before = typedPolicy(base.policy);
  const isChanged = FIELDS.some((field) => typed[field] !== before[field]);
  const follow = async () => {
    const now = await client.fetchQuery({ ...queries.labelPolicy(org), staleTime: 0 });
    const there = typedPolicy(now.policy);
    const theirs = FIELDS.filter((field) => there[field] !== before[field]);
    const kept = theirs.filter((field) => typed[field] !== before[field] && typed[field] !== there[field]);
    const taken = theirs.filter((field) => !kept.includes(field));
    const next = { ...typed, ...Object.fromEntries(taken.map((field) => [field, there[field]])) };
    // What an earlier change of theirs did to the form is still so, unless the person has typed there since.
    const all = new Set([...(meanwhile?.taken ?? []), ...(meanwhile?.kept ?? []), ...theirs]);
    const fields = FIELDS.filter((field) => all.has(field));
    setTyped(next);
    setBase(now);
    setMeanwhile({
      of: now,
      taken: fields.filter((field) => next[field] === there[field]),
      kept: fields.filter((field) => next[field] !== there[field]),
    });
    if (FIELDS.some((field) => next[field] !== there[field])) return;
    const text = "The policy is now as the form has it, so there is nothing left to save.";
    throw new ApiError(409, "label_policy_same", text);
  };
  const run = async () => {
    try {
      const policy = withTyped(base.policy, typed, allowedValues ?? {});
      await change("PUT", POLICY, { orgName: org }, { version: base.version, policy });
    } catch (error) {
      if (error instanceof ApiError && error.reason === "label_policy_changed") await follow();
      throw error;
    }
    await client.invalidateQueries({ queryKey: ["label-policy", org] });
    await client.invalidateQueries({ queryKey: ["label-compliance", org] });
  };
  return (
    <Confirm
      title="Change the policy for labels?"
      action="Change the policy"
      isDangerous={false}
      isReady={allowedValues !== undefined && isChanged}
      onClose={onClose}
      run={run}
    >
      <p>It decides about labels that are set from now on. No label that a state has is changed.</p>
      {meanwhile && (
        <Notice tone="warn">
          {meanwhile.of.changedBy ?? "Somebody else"} changed the policy while you did.
          {meanwhile.taken.length > 0 && ` The form now has their change of: ${listed(meanwhile.taken)}.`}
          {meanwhile.kept.length > 0 &&
            ` You changed the same: ${listed(meanwhile.kept)}. The form has yours, which would replace theirs.`}
        </Notice>
      )}
      <Line label={TITLES.required} value={typed.required} onChange={set("required")} hint="With commas between them." />
      <Line label={TITLES.allowed} value={typed.allowed} onChange={set("allowed")} hint="Empty for all keys." />
      <Line label={TITLES.final} value={typed.final} onChange={set("final")} />
      <Line label={TITLES.reserved} value={typed.reserved} onChange={set("reserved")} />
      <label className="field">
        <span>{TITLES.values}</span>
        <textarea
          rows={3}
          spellCheck={false}
          value={typed.values}
          onChange={(event) => set("values")(event.target.value)}
          placeholder="env: dev, prod"
        />
        <span className="faint">
          A key, a colon, and its values, on each line. A text like "5" or "a, b" is in quotes. Other keys take any value.
        </span>
      </label>
      {meanwhile?.kept.map((field) => (
        <div key={field} className="faint">
          Theirs, {TITLES[field]}: <Code value={typedPolicy(meanwhile.of.policy)[field] || "none"} />
        </div>
      ))}
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
                <Empty icon="check" title={checked === 1 ? "The one state keeps to it" : `None of ${number(checked)} states breaks it`} />
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
        <Edit org={org} of={policy.data} onClose={() => setEditing(false)} />
      )}
    </>
  );
}
