// The audit trail of an organization.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { Button } from "react-aria-components";
import { address, download } from "../api/client";
import * as queries from "../api/queries";
import { count, visible } from "../format";
import { Icon } from "../ui/icons";
import { Badge, Card, Empty, Failure, Loaded, More, Search, Select, Table, Time, useTitle, useTyped } from "../ui/parts";
import { useOrg } from "./orgparts";

/** How long a person may take for the next key of a day, in milliseconds. */
const PAUSE = 500;

/** A day, as the browser's own field for it. While its year is typed, the field has days of the years 2 and 20. */
function Day({ label, value, onChange }: { label: string; value: string; onChange: (day: string) => void }) {
  const [typed, setTyped] = useTyped(value, onChange, PAUSE);
  return (
    <label className="select">
      <span>{label}</span>
      <input type="date" value={typed} onChange={(event) => setTyped(event.target.value)} />
    </label>
  );
}

export function Audit() {
  const org = useOrg();
  const search = useSearch({ from: "/$org/-/audit" });
  const navigate = useNavigate({ from: "/$org/-/audit" });
  const log = useInfiniteQuery(queries.audit(org, search));
  const types = useQuery(queries.eventTypes(org));
  const [typed, setTyped] = useState(search.user ?? "");
  const [error, setError] = useState<unknown>();
  const all = useMemo(() => log.data?.pages.flatMap((page) => page.auditLogEvents) ?? [], [log.data]);
  useTitle("Audit trail", org);
  const filter = (change: queries.AuditFilter) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  // The server looks for whole logins, so it is asked when the person stops typing.
  useEffect(() => {
    if (typed === (search.user ?? "")) return;
    const timer = setTimeout(
      () => void navigate({ search: (before) => ({ ...before, user: typed || undefined }), replace: true }),
      500,
    );
    return () => clearTimeout(timer);
  }, [typed, search.user, navigate]);
  const save = (format: "csv" | "cef") => {
    setError(undefined);
    const query = Object.entries(queries.auditQuery(search)).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)]],
    );
    const url = address("/api/orgs/{orgName}/auditlogs/v2/export", { orgName: org });
    const all = new URLSearchParams([...query, ["format", format]] as string[][]);
    download(`${url}?${all.toString()}`, "GET").catch(setError);
  };
  return (
    <>
      <h1>Audit trail</h1>
      <Card
        title="Who did what, newest first"
        actions={(["csv", "cef"] as const).map((format) => (
          <Button
            key={format}
            className="button small"
            aria-label={`Export what is filtered as ${format.toUpperCase()}`}
            onPress={() => save(format)}
          >
            <Icon name="download" /> {format.toUpperCase()}
          </Button>
        ))}
      >
        <div className="filters">
          <Search label="Login" value={typed} onChange={setTyped} placeholder="Login, complete" />
          <Select
            label="Action"
            value={search.event ?? ""}
            onChange={(event) => filter({ event: event || undefined })}
            options={[
              ["", "All"],
              ...(types.data?.eventTypes ?? []).map(({ event, displayName }): [string, string] => [event, displayName]),
            ]}
          />
          <Day label="From" value={search.from ?? ""} onChange={(day) => filter({ from: day || undefined })} />
          <Day label="until" value={search.until ?? ""} onChange={(day) => filter({ until: day || undefined })} />
        </div>
        {error !== undefined && <Failure error={error} />}
        <Loaded of={log} rows={8}>
          {() =>
            all.length === 0 ? (
              <Empty icon="eye" title="No record matches" />
            ) : (
              <Table label="Audit trail" head={["When", "Who", "Action", "What", "From"]}>
                {all.map((record, index) => (
                  <tr key={index}>
                    <td>
                      <Time at={record.timestamp} />
                    </td>
                    <td>
                      <span className="strong">{record.user.name}</span>
                      {record.tokenName && <div className="faint">{record.tokenName}</div>}
                    </td>
                    <td>
                      <code>{record.event}</code> {record.authFailure && <Badge tone="bad">refused</Badge>}
                    </td>
                    <td className="what">{visible(record.description)}</td>
                    <td className="faint">{record.sourceIP || "–"}</td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
        {log.hasNextPage && <More isLoading={log.isFetchingNextPage} onPress={() => void log.fetchNextPage()} />}
        {all.length > 0 && <p className="foot">{count(all.length, "record")} shown. An export has all that match.</p>}
      </Card>
    </>
  );
}
