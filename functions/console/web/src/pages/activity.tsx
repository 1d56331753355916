// The updates and previews of a stack.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import * as queries from "../api/queries";
import type { StackName, Update } from "../api/queries";
import { duration, kind, number, plain, visible } from "../format";
import { Card, Changes, Empty, Loaded, More, Notice, Result, Table, Time, useTitle } from "../ui/parts";
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

function Row({ name, update, isPreview }: { name: StackName; update: Update; isPreview: boolean }) {
  const { info } = update;
  const text = `${kind(info.kind)}${isPreview ? "" : ` ${update.version}`}`;
  return (
    <tr>
      <td>
        {isPreview ? (
          <Link className="strong" to="/$org/$project/$stack/previews/$id" params={{ ...name, id: update.updateID }}>
            {text}
          </Link>
        ) : (
          <Link
            className="strong"
            to="/$org/$project/$stack/updates/$version"
            params={{ ...name, version: String(update.version) }}
          >
            {text}
          </Link>
        )}
        {info.message && <div className="faint ellipsis message">{plain(info.message)}</div>}
      </td>
      <td>
        <Result result={info.result} />
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

export function Activity() {
  const name = useStackName();
  const history = useInfiniteQuery(queries.history(name));
  const previews = useQuery(queries.previews(name));
  const updates = history.data?.pages.flatMap((page) => page.updates) ?? [];
  useTitle("Activity", `${name.project}/${name.stack}`);
  return (
    <>
      <Card title="Updates" count={history.data?.pages[0]?.total}>
        <Loaded of={history}>
          {() =>
            updates.length === 0 ? (
              <Empty icon="clock" title="This stack was never updated" />
            ) : (
              <Table label="Updates" head={HEAD}>
                {updates.map((update) => (
                  <Row key={update.version} name={name} update={update} isPreview={false} />
                ))}
              </Table>
            )
          }
        </Loaded>
        {history.hasNextPage && (
          <More isLoading={history.isFetchingNextPage} onPress={() => void history.fetchNextPage()} />
        )}
      </Card>
      {previews.data && previews.data.updates.length > 0 && (
        <Card title="Previews since the last update" count={previews.data.total}>
          <Table label="Previews" head={HEAD}>
            {previews.data.updates.map((update) => (
              <Row key={update.updateID} name={name} update={update} isPreview />
            ))}
          </Table>
          {previews.data.total > previews.data.updates.length && (
            <Notice>Here are the newest {number(previews.data.updates.length)}.</Notice>
          )}
        </Card>
      )}
    </>
  );
}
