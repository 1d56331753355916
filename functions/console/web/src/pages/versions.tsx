// The versions of a stack: compare any two, download each, and restore one.

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { Button } from "react-aria-components";
import { change, download } from "../api/client";
import * as queries from "../api/queries";
import type { Differences, Differing, StackName } from "../api/queries";
import { kind, nameIn, number, shortType, typeIn } from "../format";
import { Diff, differenceOf } from "../ui/diff";
import { Icon } from "../ui/icons";
import { Badge, Card, Compare, Confirm, Empty, Failure, Loaded, More, Result, Table, Time, useTitle } from "../ui/parts";
import { useRightsOnStack } from "../rights";
import { useStackName } from "./stack";

type How = "added" | "removed" | "changed" | "sealed";

/** Resources that are drawn at first, and with each press of the button. */
const SHOWN = 100;

const TONES = { added: "good", removed: "bad", changed: "busy", sealed: "plain" } as const;

const HOWS: Record<How, string> = { added: "added", removed: "removed", changed: "changed", sealed: "secrets changed" };

/** The resources that differ. Those whose secrets alone do are last: encrypted again, one may have the same value. */
function rowsOf({ added, removed, changed }: Differences): [How, Differing][] {
  const isSealed = (one: Differing) => !one.changesCut && (one.changes ?? []).every((change) => change.secret);
  const of = (how: How, those: Differing[]) => those.map((one): [How, Differing] => [how, one]);
  return [
    ...of("added", added),
    ...of("changed", changed.filter((one) => !isSealed(one))),
    ...of("removed", removed),
    ...of("sealed", changed.filter(isSealed)),
  ];
}

function Comparison({ name, from, to }: { name: StackName; from: number; to: number }) {
  const compared = useQuery(queries.comparison(name, from, to));
  const rows = useMemo(() => (compared.data ? rowsOf(compared.data) : []), [compared.data]);
  const [max, setMax] = useState(SHOWN);
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
      <Loaded of={compared}>
        {({ addedCount, changedCount, removedCount }) => {
          if (addedCount + changedCount + removedCount === 0) return <Empty icon="check" title="Nothing differs" />;
          const sealed = rows.filter(([how]) => how === "sealed").length;
          const unlisted = addedCount + changedCount + removedCount - rows.length;
          return (
            <>
              <p className="row pad">
                {addedCount > 0 && <Badge tone="good">{number(addedCount)} added</Badge>}
                {changedCount > sealed && <Badge tone="busy">{number(changedCount - sealed)} changed</Badge>}
                {removedCount > 0 && <Badge tone="bad">{number(removedCount)} removed</Badge>}
                {sealed > 0 && <Badge tone="plain">{number(sealed)} in secrets alone</Badge>}
                <span className="faint">Secrets are masked. Encrypted again, one may have the same value.</span>
              </p>
              <ul className="steps">
                {rows.slice(0, max).map(([how, one]) => (
                  <li key={`${how} ${one.urn} ${one.delete ?? false}`} className="step">
                    <div className="step-head still">
                      <span className="ellipsis strong">{nameIn(one.urn)}</span>
                      <span className="faint ellipsis type">{shortType(typeIn(one.urn))}</span>
                      <span className="end">
                        {one.delete && <Badge tone="warn">Waits to be deleted</Badge>}
                        <Badge tone={TONES[how]}>{HOWS[how]}</Badge>
                      </span>
                    </div>
                    {(one.changes ?? []).length > 0 && (
                      <div className="step-body">
                        <Diff of={(one.changes ?? []).map(differenceOf)} />
                      </div>
                    )}
                    {one.changesCut && <p className="none">It changed more than what is listed.</p>}
                  </li>
                ))}
              </ul>
              {rows.length > max && <More isLoading={false} onPress={() => setMax(max + SHOWN)} />}
              {unlisted > 0 && <p className="none pad">And {number(unlisted)} more, which are not listed.</p>}
            </>
          );
        }}
      </Loaded>
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
    download(queries.exportAddress(name, version)).catch(setError);
  };
  const restore = async (version: number) => {
    const names = { orgName: name.org, projectName: name.project, stackName: name.stack, version: String(version) };
    await change("POST", "/api/stacks/{orgName}/{projectName}/{stackName}/updates/{version}/restore", names);
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
                      <Result result={queries.resultOf(info)} />
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
