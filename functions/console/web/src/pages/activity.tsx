// The updates and previews of a stack.

import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import * as queries from "../api/queries";
import type { StackName, Update } from "../api/queries";
import { duration, kind, plain, visible } from "../format";
import { Card, Changes, Empty, Failure, Loaded, More, Result, Table, Time, Waiting, useTitle } from "../ui/parts";
import { useStackName } from "./stack";

/** Where an update came from: a pull request, a commit, a CI. */
export function Origin({ environment }: { environment: Record<string, string> }) {
  const commit = environment["git.head"];
  const parts = [
    environment["git.headName"]?.replace("refs/heads/", ""),
    commit?.slice(0, 8),
    environment["ci.pr.number"] && `pull request ${environment["ci.pr.number"]}`,
    environment["ci.system"],
  ].filter(Boolean);
  return parts.length === 0 ? null : <span className="faint">{visible(parts.join(" · "))}</span>;
}

/** An update, or a preview. */
interface Entry {
  update: Update;
  isPreview: boolean;
  /** Where it is in the list, from its end: a preview is above the version that it started from. */
  place: number;
}

const entryOf = (update: Update, isPreview: boolean): Entry => ({
  update,
  isPreview,
  place: update.version * 2 + (isPreview ? 1 : 0),
});

function Row({ name, update, isPreview }: { name: StackName; update: Update; isPreview: boolean }) {
  const { info } = update;
  return (
    <tr>
      <td>
        {isPreview ? (
          <>
            <Link className="strong" to="/$org/$project/$stack/previews/$id" params={{ ...name, id: update.updateID }}>
              {kind(info.kind)}
            </Link>{" "}
            <span className="faint">{update.version === 0 ? "from the empty stack" : `from version ${update.version}`}</span>
          </>
        ) : (
          <Link
            className="strong"
            to="/$org/$project/$stack/updates/$version"
            params={{ ...name, version: String(update.version) }}
          >
            {`${kind(info.kind)} ${update.version}`}
          </Link>
        )}
        {info.message && <div className="faint ellipsis message">{plain(info.message)}</div>}
      </td>
      <td>
        <Result result={queries.resultOf(info)} />
      </td>
      <td>
        <Changes counts={info.resourceChanges} />
      </td>
      <td>
        {update.requestedBy.githubLogin}
        <div>
          <Origin environment={info.environment} />
        </div>
      </td>
      <td>
        <Time at={info.startTime} />
      </td>
      <td>{info.endTime > 0 ? duration(info.endTime - info.startTime) : "–"}</td>
    </tr>
  );
}

const HEAD = ["Update", "Result", "Changes", "Who", "Started", "Took"];

/** The place down to which a list was read. */
const reachOf = (list: { hasNextPage: boolean }, entries: Entry[]) => (list.hasNextPage ? (entries.at(-1)?.place ?? 0) : 0);

export function Activity() {
  const name = useStackName();
  const history = useInfiniteQuery(queries.history(name));
  const previews = useInfiniteQuery(queries.previews(name));
  const updates = history.data?.pages.flatMap((page) => page.updates.map((one) => entryOf(one, false))) ?? [];
  const planned = previews.data?.pages.flatMap((page) => page.previews.map((one) => entryOf(one, true))) ?? [];
  // Where one list was read further than the other, something of the other may be missing in between.
  const reach = { updates: reachOf(history, updates), previews: reachOf(previews, planned) };
  const entries = [...planned, ...updates]
    .filter(({ place }) => place >= Math.max(reach.updates, reach.previews))
    .sort((a, b) => b.place - a.place);
  const behind = reach.previews > reach.updates ? previews : history;
  useTitle("Activity", `${name.project}/${name.stack}`);
  return (
    <Card title="Updates and previews">
      {!previews.data && !previews.error ? (
        <Waiting />
      ) : (
        <Loaded of={history}>
          {() =>
            entries.length === 0 ? (
              <Empty icon="clock" title="This stack was never updated" />
            ) : (
              <Table label="Updates and previews" head={HEAD}>
                {entries.map(({ update, isPreview }) => (
                  <Row key={update.updateID} name={name} update={update} isPreview={isPreview} />
                ))}
              </Table>
            )
          }
        </Loaded>
      )}
      {previews.error && <Failure error={previews.error} again={() => void previews.refetch()} />}
      {behind.hasNextPage && (
        <More isLoading={behind.isFetchingNextPage} onPress={() => void behind.fetchNextPage()} />
      )}
    </Card>
  );
}
