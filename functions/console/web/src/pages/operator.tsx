// How the server is doing, for its admins.

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import * as queries from "../api/queries";
import { bytes, number } from "../format";
import { useRights } from "../rights";
import { Badge, Card, Empty, Facts, Loaded, Notice, Table, Time, Waiting, useTitle } from "../ui/parts";
import { NotHere } from "./nothere";
import { useOrg } from "./orgparts";

export function Operator() {
  const org = useOrg();
  const { own, isServerAdmin } = useRights(org);
  if (!own) return <Waiting rows={6} />;
  return isServerAdmin ? <Server /> : <NotHere />;
}

function Server() {
  const org = useOrg();
  const status = useQuery(queries.serverStatus);
  const storage = useQuery(queries.serverStorage);
  const ownOrgs = useQuery(queries.user).data?.organizations.map((one) => one.githubLogin) ?? [];
  useTitle("Server");
  return (
    <>
      <h1>Server</h1>
      <Card title="Health">
        <Loaded of={status}>
          {({ version, health, signsSince, sweep }) => (
            <div className="pad">
              <Facts
                of={[
                  [
                    "Works",
                    health === "ok" ? (
                      <Badge key="h" tone="good" icon="check">
                        Yes
                      </Badge>
                    ) : (
                      <Badge key="h" tone="bad" icon="cross">
                        {health} does not answer
                      </Badge>
                    ),
                  ],
                  ["Version", version],
                  ["Key that signs", signsSince ? <Time key="k" at={signsSince} /> : "not made yet"],
                  ["Updates that run, or ended within five minutes", number(sweep.recent)],
                ]}
              />
              <p className="faint">
                <code>statewright doctor</code> also checks the disk, and <code>statewright key rotate</code> replaces the
                keys.
              </p>
            </div>
          )}
        </Loaded>
      </Card>
      <Card title="Waits for the sweep" count={status.data?.sweep.overdue}>
        <Loaded of={status}>
          {({ sweep }) => (
            <>
              {sweep.overdue === 0 ? (
                <Empty icon="check" title="Nothing waits" />
              ) : (
                <p className="none">
                  {number(sweep.overdue)}
                  {sweep.more ? " or more" : ""} items wait, the oldest since <Time at={sweep.oldest} />. A sweep runs every
                  minute on a server, and every five with functions.
                </p>
              )}
              {sweep.updates.length > 0 && (
                <Table label="Updates whose client is gone" head={["Stack", "By", "Since"]}>
                  {sweep.updates.map((update) => {
                    const [org = "", project = "", stack = ""] = update.stack?.split("/") ?? [];
                    return (
                      <tr key={update.updateID}>
                        <td>
                          {update.stack && ownOrgs.includes(org) ? (
                            <Link className="strong" to="/$org/$project/$stack" params={{ org, project, stack }}>
                              {update.stack}
                            </Link>
                          ) : (
                            (update.stack ?? update.updateID)
                          )}
                        </td>
                        <td>{update.by}</td>
                        <td>
                          <Time at={update.since} />
                        </td>
                      </tr>
                    );
                  })}
                </Table>
              )}
            </>
          )}
        </Loaded>
      </Card>
      <Card title="Storage" count={storage.data?.items.length}>
        <Loaded of={storage}>
          {({ items, more }) => (
            <>
              <Table
                label="Storage by organization"
                head={["Organization", "Stacks", "States", "Resources", "Current versions"]}
              >
                {items.map((one) => (
                  <tr key={one.name} className={one.name === org ? "chosen" : ""}>
                    <td className="strong">{one.name}</td>
                    <td>{number(one.stacks)}</td>
                    <td>{number(one.states)}</td>
                    <td>{number(one.resources)}</td>
                    <td>
                      {bytes(one.bytes)}
                      {one.unmeasured > 0 && (
                        <div className="faint">without {number(one.unmeasured)} stacks of an older program</div>
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
              {more && <Notice>There are more organizations than this page counts.</Notice>}
              <p className="foot">
                Bytes of the current versions: of stacks compressed, and of states as their clients sent them. Older versions
                and logs are not counted.
              </p>
            </>
          )}
        </Loaded>
      </Card>
    </>
  );
}
