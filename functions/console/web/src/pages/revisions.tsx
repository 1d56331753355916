// The revisions of an environment: compare any two, tag, restore and retract them.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { Button, Input, Label, TextField } from "react-aria-components";
import { change } from "../api/client";
import * as queries from "../api/queries";
import type { EnvironmentName, Revision } from "../api/queries";
import { type Line, Seals, lines } from "../definitions";
import { count, visible } from "../format";
import { useRightsOnEnvironment } from "../rights";
import { Icon } from "../ui/icons";
import {
  Badge,
  Card,
  Compare,
  Confirm,
  Empty,
  Failure,
  Loaded,
  More,
  RowMenu,
  Table,
  Time,
  Waiting,
  useTitle,
} from "../ui/parts";
import { InItsPlace, Lines, Restore, ROUTE, useName, useReadAgain } from "./environment";

const { ENVIRONMENT, environmentPath } = queries;

function Comparison({ name, from, to }: { name: EnvironmentName; from: number; to: number }) {
  const old = useQuery(queries.definition(name, from));
  const next = useQuery(queries.definition(name, to));
  const difference = useMemo(() => {
    if (!old.data || !next.data) return undefined;
    const seals = new Seals();
    return lines(seals.hide(old.data.text), seals.hide(next.data.text));
  }, [old.data, next.data]);
  const error = old.error ?? next.error;
  const counted = (how: Line["how"]) => difference?.filter((line) => line.how === how).length ?? 0;
  return (
    <Card
      title={`Revision ${from} compared with revision ${to}`}
      actions={
        <Link className="button small" to={`${ROUTE}/revisions`} params={name} search={{}}>
          <Icon name="cross" /> Close
        </Link>
      }
    >
      {error ? (
        <Failure error={error} />
      ) : !difference ? (
        <Waiting />
      ) : counted("added") + counted("removed") === 0 ? (
        <>
          <InItsPlace asked={from} found={old.data} />
          <InItsPlace asked={to} found={next.data} />
          <Empty icon="check" title="Nothing differs" />
        </>
      ) : (
        <>
          <InItsPlace asked={from} found={old.data} />
          <InItsPlace asked={to} found={next.data} />
          <p className="row pad">
            {counted("added") > 0 && <Badge tone="good">{count(counted("added"), "line")} added</Badge>}
            {counted("removed") > 0 && <Badge tone="bad">{count(counted("removed"), "line")} removed</Badge>}
            <span className="faint">Secrets are masked. Sealed again, one may have the same value.</span>
          </p>
          <Lines of={difference} />
        </>
      )}
    </Card>
  );
}

function TagRevision({ name, revision, onClose }: { name: EnvironmentName; revision: number; onClose: () => void }) {
  const tags = useQuery(queries.revisionTags(name));
  const readAgain = useReadAgain(name);
  const [typed, setTyped] = useState("");
  const tag = typed.trim();
  const moved = tags.data?.tags.find((one) => one.name === tag);
  const add = async () => {
    const names = environmentPath(name);
    if (moved) {
      await change("PATCH", `${ENVIRONMENT}/versions/tags/{tagName}`, { ...names, tagName: tag }, { revision });
    } else {
      await change("POST", `${ENVIRONMENT}/versions/tags`, names, { name: tag, revision });
    }
    await readAgain();
  };
  return (
    <Confirm
      title={`Tag revision ${revision}`}
      action={moved ? "Move the tag" : "Add the tag"}
      isDangerous={false}
      onClose={onClose}
      run={add}
    >
      <TextField className="entry" value={typed} onChange={setTyped} autoFocus isRequired>
        <Label>Tag</Label>
        <Input />
      </TextField>
      <p className="faint">
        {moved
          ? `Revision ${moved.revision} has this tag now. What imports it by the tag gets revision ${revision}.`
          : `Imports can name it: ${name.project}/${name.env}@${tag || "TAG"}`}
      </p>
    </Confirm>
  );
}

type Asking = { what: "tag" | "restore" | "retract"; revision: number } | { what: "untag"; revision: number; tag: string };

function Asked({ name, of, onClose }: { name: EnvironmentName; of: Asking; onClose: () => void }) {
  const readAgain = useReadAgain(name);
  const names = environmentPath(name);
  const { revision } = of;
  if (of.what === "tag") return <TagRevision name={name} revision={revision} onClose={onClose} />;
  if (of.what === "restore") return <Restore name={name} revision={revision} onClose={onClose} />;
  if (of.what === "untag") {
    const { tag } = of;
    const remove = async () => {
      await change("DELETE", `${ENVIRONMENT}/versions/tags/{tagName}`, { ...names, tagName: tag });
      await readAgain();
    };
    return (
      <Confirm title={`Remove the tag ${tag}?`} action="Remove it" onClose={onClose} run={remove}>
        <p>Definitions that import this environment by the tag cannot be opened any more.</p>
      </Confirm>
    );
  }
  const retract = async (reason: string) => {
    await change("POST", `${ENVIRONMENT}/versions/{version}/retract`, { ...names, version: String(revision) }, { reason });
    await readAgain();
  };
  return (
    <Confirm title={`Retract revision ${revision}?`} action="Retract it" needsReason onClose={onClose} run={retract}>
      <p>It cannot be used any more: what names it gets the current revision. This cannot be undone.</p>
    </Confirm>
  );
}

function RevisionRow({
  name,
  one,
  isNewest,
  isChosen,
  ask,
  compare,
}: {
  name: EnvironmentName;
  one: Revision;
  isNewest: boolean;
  isChosen: boolean;
  ask: (asking: Asking) => void;
  compare: (from: number, to: number) => void;
}) {
  const revision = one.number;
  const may = useRightsOnEnvironment(name);
  return (
    <tr className={isChosen ? "chosen" : ""}>
      <td className="strong">
        <Link to={ROUTE} params={name} search={isNewest ? {} : { version: String(revision) }}>
          {revision}
        </Link>
      </td>
      <td>
        <span className="row tight">
          {one.tags.map((tag) => (
            <span key={tag} className="label tag">
              {tag}
              {tag !== "latest" && may("apply") && (
                <Button
                  className="untag"
                  aria-label={`Remove the tag ${tag}`}
                  onPress={() => ask({ what: "untag", revision, tag })}
                >
                  <Icon name="cross" />
                </Button>
              )}
            </span>
          ))}
        </span>
        {one.retracted && (
          <>
            <Badge tone="warn">Retracted</Badge>
            <div className="faint message">
              by {one.retracted.byLogin}, for revision {one.retracted.replacement}
              {one.retracted.reason && `: ${visible(one.retracted.reason)}`}
            </div>
          </>
        )}
      </td>
      <td>{one.creatorLogin}</td>
      <td>
        <Time at={one.created} />
      </td>
      <td className="actions">
        {revision > 1 && (
          <Button
            className="button small"
            aria-label={`Changes of revision ${revision}`}
            onPress={() => compare(revision - 1, revision)}
          >
            Changes
          </Button>
        )}
        {may("apply") && (
          <Button
            className="button small"
            aria-label={`Tag revision ${revision}`}
            onPress={() => ask({ what: "tag", revision })}
          >
            Tag
          </Button>
        )}
        {!isNewest && !one.retracted && may("apply") && (
          <RowMenu
            of={`about revision ${revision}`}
            text="More"
            actions={[
              ["Restore", () => ask({ what: "restore", revision })],
              ...(may("member") ? [["Retract", () => ask({ what: "retract", revision })] as [string, () => void]] : []),
            ]}
          />
        )}
      </td>
    </tr>
  );
}

export function Revisions() {
  const name = useName();
  const search = useSearch({ from: `${ROUTE}/revisions` });
  const navigate = useNavigate({ from: `${ROUTE}/revisions` });
  const revisions = useInfiniteQuery(queries.revisions(name));
  const [asking, ask] = useState<Asking>();
  const all = revisions.data?.pages.flat() ?? [];
  const newest = all[0]?.number ?? 0;
  const [from, to] = [Number(search.from), Number(search.to)];
  const compare = (from: number, to: number) => void navigate({ search: { from: String(from), to: String(to) } });
  useTitle("Revisions", `${name.project}/${name.env}`);
  return (
    <>
      {from > 0 && to > 0 && <Comparison key={`${from} ${to}`} name={name} from={from} to={to} />}
      <Card
        title="Revisions"
        count={newest || undefined}
        actions={newest > 1 && <Compare newest={newest} from={from || newest - 1} to={to || newest} onChange={compare} />}
      >
        <Loaded of={revisions}>
          {() => (
            <Table label="Revisions" head={["Revision", "Tags", "By", "When", ""]}>
              {all.map((one) => (
                <RevisionRow
                  key={one.number}
                  name={name}
                  one={one}
                  isNewest={one.number === newest}
                  isChosen={one.number === from || one.number === to}
                  ask={ask}
                  compare={compare}
                />
              ))}
            </Table>
          )}
        </Loaded>
        {revisions.hasNextPage && (
          <More isLoading={revisions.isFetchingNextPage} onPress={() => void revisions.fetchNextPage()} />
        )}
      </Card>
      {asking && <Asked name={name} of={asking} onClose={() => ask(undefined)} />}
    </>
  );
}
