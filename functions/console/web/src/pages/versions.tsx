// The versions of a stack: compare any two, download each, and restore one.

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { Button } from "react-aria-components";
import { address, download, sendText, text } from "../api/client";
import * as queries from "../api/queries";
import type { Exported, Resource, StackName } from "../api/queries";
import { kind, nameIn, number, shortType } from "../format";
import { Diff } from "../ui/diff";
import { Icon } from "../ui/icons";
import { Badge, Card, Compare, Confirm, Empty, Failure, Loaded, More, Result, Table, Time, Waiting, useTitle } from "../ui/parts";
import { type Difference, differences } from "../values";
import { useRightsOnStack } from "../rights";
import { useStackName } from "./stack";

/** A resource that differs. */
interface Changed {
  urn: string;
  type: string;
  how: Difference["how"];
  properties: Difference[];
}

const COMPARED = ["id", "inputs", "outputs", "parent", "provider", "protect", "dependencies"] as const;

function compare(from: Exported, to: Exported): Changed[] {
  const byUrn = (exported: Exported) =>
    new Map((exported.deployment?.resources ?? []).filter((one) => !one.delete).map((one) => [one.urn, one]));
  const [old, next] = [byUrn(from), byUrn(to)];
  const part = (resource: Resource) => Object.fromEntries(COMPARED.map((name) => [name, resource[name]]).filter(([, it]) => it !== undefined));
  const changed: Changed[] = [];
  for (const [urn, resource] of next) {
    const before = old.get(urn);
    if (!before) changed.push({ urn, type: resource.type, how: "added", properties: differences({}, resource.inputs ?? {}) });
    else {
      const properties = differences(part(before), part(resource));
      const how = properties.every((one) => one.how === "sealed") ? "sealed" : "changed";
      if (properties.length > 0) changed.push({ urn, type: resource.type, how, properties });
    }
  }
  for (const [urn, resource] of old) {
    if (!next.has(urn)) {
      changed.push({ urn, type: resource.type, how: "removed", properties: differences(resource.inputs ?? {}, {}) });
    }
  }
  // Those that may be the same are last.
  return [...changed.filter((one) => one.how !== "sealed"), ...changed.filter((one) => one.how === "sealed")];
}

/** Resources that are drawn at first, and with each press of the button. */
const SHOWN = 100;

const TONES = { added: "good", removed: "bad", changed: "busy", sealed: "plain" } as const;

function Comparison({ name, from, to }: { name: StackName; from: number; to: number }) {
  const old = useQuery(queries.exported(name, from));
  const next = useQuery(queries.exported(name, to));
  const changed = useMemo(() => (old.data && next.data ? compare(old.data, next.data) : []), [old.data, next.data]);
  const [max, setMax] = useState(SHOWN);
  const error = old.error ?? next.error;
  const count = (how: Changed["how"]) => changed.filter((one) => one.how === how).length;
  return (
    <Card
      title={`Version ${from} compared with version ${to}`}
      actions={
        <Link
          className="button small"
          to="/$org/$project/$stack/versions"
          params={name}
          activeOptions={{ exact: true }}
        >
          <Icon name="cross" /> Close
        </Link>
      }
    >
      {error ? (
        <Failure error={error} />
      ) : !old.data || !next.data ? (
        <Waiting />
      ) : changed.length === 0 ? (
        <Empty icon="check" title="Nothing differs" />
      ) : (
        <>
          <p className="row pad">
            {count("added") > 0 && <Badge tone="good">{number(count("added"))} added</Badge>}
            {count("changed") > 0 && <Badge tone="busy">{number(count("changed"))} changed</Badge>}
            {count("removed") > 0 && <Badge tone="bad">{number(count("removed"))} removed</Badge>}
            {count("sealed") > 0 && <Badge tone="plain">{number(count("sealed"))} with secrets encrypted again</Badge>}
            <span className="faint">Secrets are masked. Encrypted again, one may have the same value.</span>
          </p>
          <ul className="steps">
            {changed.slice(0, max).map((one) => (
              <li key={one.urn} className="step">
                <div className="step-head still">
                  <span className="ellipsis strong">{nameIn(one.urn)}</span>
                  <span className="faint ellipsis type">{shortType(one.type)}</span>
                  <span className="end">
                    <Badge tone={TONES[one.how]}>{one.how === "sealed" ? "encrypted again" : one.how}</Badge>
                  </span>
                </div>
                <div className="step-body">
                  <Diff of={one.properties} />
                </div>
              </li>
            ))}
          </ul>
          {changed.length > max && <More isLoading={false} onPress={() => setMax(max + SHOWN)} />}
        </>
      )}
    </Card>
  );
}

export function Versions() {
  const name = useStackName();
  const may = useRightsOnStack(name);
  const search = useSearch({ from: "/$org/$project/$stack/versions" });
  const navigate = useNavigate({ from: "/$org/$project/$stack/versions" });
  const history = useInfiniteQuery(queries.history(name));
  const [error, setError] = useState<unknown>();
  const [restored, setRestored] = useState<number>();
  const client = useQueryClient();
  const updates = history.data?.pages.flatMap((page) => page.updates) ?? [];
  const [from, to] = [Number(search.from), Number(search.to)];
  const isCompared = from > 0 && to > 0;
  useTitle("Versions", `${name.project}/${name.stack}`);
  const save = (version: number) => {
    setError(undefined);
    download(queries.exportAddress(name, version), `${name.project}-${name.stack}-${version}.json`).catch(setError);
  };
  const restore = async (version: number) => {
    const names = { orgName: name.org, projectName: name.project, stackName: name.stack };
    const url = address("/api/stacks/{orgName}/{projectName}/{stackName}/import", names);
    await sendText(url, await text(queries.exportAddress(name, version)));
    await client.invalidateQueries();
  };
  const newest = updates[0]?.version ?? 0;
  const compareThese = (from: number, to: number) =>
    void navigate({ search: { from: String(from), to: String(to) } });
  return (
    <>
      {isCompared && <Comparison key={`${from} ${to}`} name={name} from={from} to={to} />}
      {error !== undefined && <Failure error={error} />}
      <Card
        title="Versions"
        count={history.data?.pages[0]?.total}
        actions={newest > 1 && <Compare newest={newest} from={from || newest - 1} to={to || newest} onChange={compareThese} />}
      >
        <Loaded of={history}>
          {() =>
            updates.length === 0 ? (
              <Empty icon="clock" title="This stack has no version yet" />
            ) : (
              <Table label="Versions" head={["Version", "Made by", "Result", "Resources", "When", ""]}>
                {updates.map(({ version, info, requestedBy }) => (
                  <tr key={version} className={version === from || version === to ? "chosen" : ""}>
                    <td className="strong">{version}</td>
                    <td>
                      <Link
                        className="underlined"
                        to="/$org/$project/$stack/updates/$version"
                        params={{ ...name, version: String(version) }}
                      >
                        {kind(info.kind)}
                      </Link>{" "}
                      of {requestedBy.githubLogin}
                    </td>
                    <td>
                      <Result result={info.result} />
                    </td>
                    <td>{number(info.resourceCount ?? 0)}</td>
                    <td>
                      <Time at={info.endTime} />
                    </td>
                    <td className="actions">
                      {version > 1 && (
                        <Button
                          className="button small"
                          aria-label={`Changes of version ${version}`}
                          onPress={() =>
                            void navigate({ search: { from: String(version - 1), to: String(version) } })
                          }
                        >
                          Changes
                        </Button>
                      )}
                      <Link
                        className="button small"
                        to="/$org/$project/$stack/resources"
                        params={name}
                        search={{ version: String(version) }}
                        aria-label={`Resources of version ${version}`}
                      >
                        Resources
                      </Link>
                      {version < newest && may("apply") && (
                        <Button
                          className="button small"
                          aria-label={`Restore version ${version}`}
                          onPress={() => setRestored(version)}
                        >
                          Restore
                        </Button>
                      )}
                      {may("plan") && (
                        <Button
                          className="button small"
                          aria-label={`Download version ${version}`}
                          onPress={() => save(version)}
                        >
                          <Icon name="download" />
                        </Button>
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
        {history.hasNextPage && (
          <More isLoading={history.isFetchingNextPage} onPress={() => void history.fetchNextPage()} />
        )}
      </Card>
      {restored !== undefined && (
        <Confirm
          title={`Make version ${restored} the next one?`}
          action="Restore it"
          onClose={() => setRestored(undefined)}
          run={() => restore(restored)}
        >
          <p>
            The state becomes what it was in version {restored}, as a new version. All versions stay. Nothing changes in
            the cloud: run <code>pulumi refresh</code>, then <code>pulumi preview</code>, before the next update.
          </p>
        </Confirm>
      )}
    </>
  );
}
