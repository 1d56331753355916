// Go to: any stack, state, environment or page of the organization, by a few letters.

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { Autocomplete, Dialog, Input, Menu, MenuItem, Modal, ModalOverlay, SearchField } from "react-aria-components";
import * as queries from "./api/queries";
import { useRights } from "./rights";
import { Icon, type IconName } from "./ui/icons";

interface Target {
  href: string;
  text: string;
  about: string;
  icon: IconName;
}

/** Targets that are shown at once. */
const SHOWN_MAX = 10;

const part = encodeURIComponent;

/** Whether the letters occur in this order; fewer gaps come first. */
function score(text: string, letters: string): number | undefined {
  const found = text.indexOf(letters);
  if (found >= 0) return found;
  let at = 0;
  let gaps = 100;
  for (const letter of letters) {
    const next = text.indexOf(letter, at);
    if (next < 0) return undefined;
    gaps += next - at;
    at = next + 1;
  }
  return gaps;
}

function usePlaces(org: string): Target[] {
  const stacks = useQuery(queries.stacks(org));
  const states = useQuery(queries.states(org));
  const environments = useQuery(queries.environments(org));
  const { may, isServerAdmin } = useRights(org);
  const isAdmin = may("admin");
  const readsTrail = may("audit");
  return useMemo(() => {
    const page = (path: string, text: string, icon: IconName): Target => ({
      href: `/${part(org)}${path}`,
      text,
      about: "Page",
      icon,
    });
    return [
      page("", "Home", "clock"),
      page("/-/stacks", "Stacks and states", "stack"),
      page("/-/environments", "Environments", "environment"),
      page("/-/dependencies", "Dependencies", "stack"),
      page("/-/locks", "Locks", "lock"),
      page("/-/members", "Members", "person"),
      page("/-/teams", "Teams", "person"),
      page("/-/grants", "Grants", "key"),
      page("/-/tokens", "Tokens", "key"),
      ...(readsTrail ? [page("/-/audit", "Audit trail", "eye")] : []),
      page("/-/deleted", "Deleted stacks and states", "state"),
      ...(isAdmin ? [page("/-/issuers", "Issuers", "key")] : []),
      page("/-/labels", "Policy for labels", "check"),
      ...(isServerAdmin ? [page("/-/operator", "Server", "screen")] : []),
      ...(stacks.data?.items ?? []).map(({ projectName, stackName }): Target => {
        const href = `/${[org, projectName, stackName].map(part).join("/")}`;
        return { href, text: `${projectName}/${stackName}`, about: "Stack", icon: "stack" };
      }),
      ...(states.data?.items ?? []).map(({ project, state }): Target => {
        const href = `/${part(org)}/-/states/${part(project)}/${part(state)}`;
        return { href, text: `${project}/${state}`, about: "State", icon: "state" };
      }),
      ...(environments.data?.items ?? []).map(({ project, name }): Target => {
        const href = `/${part(org)}/esc/${part(project)}/${part(name)}`;
        return { href, text: `${project}/${name}`, about: "Environment", icon: "environment" };
      }),
    ];
  }, [org, isAdmin, readsTrail, isServerAdmin, stacks.data, states.data, environments.data]);
}

export default function Palette({ org, onClose }: { org: string; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const places = usePlaces(org);
  const navigate = useNavigate();
  const found = useMemo(() => {
    const letters = typed.toLowerCase().replace(/\s+/g, "");
    return places
      .flatMap((place) => {
        const rank = score(place.text.toLowerCase().replace(/\s+/g, ""), letters);
        return rank === undefined ? [] : [{ place, rank }];
      })
      .sort((a, b) => a.rank - b.rank)
      .slice(0, SHOWN_MAX)
      .map(({ place }) => place);
  }, [places, typed]);
  return (
    <ModalOverlay className="overlay top-of-page" isOpen isDismissable onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Modal className="modal palette">
        <Dialog className="dialog" aria-label="Go to">
          <Autocomplete inputValue={typed} onInputChange={setTyped}>
            <SearchField aria-label="Stack, state or page" autoFocus className="search">
              <Icon name="search" />
              <Input placeholder="Stack, state or page" />
            </SearchField>
            <Menu
              className="menu"
              aria-label="Places"
              items={found}
              renderEmptyState={() => <p className="faint none">Nothing has these letters.</p>}
              onAction={(key) => {
                onClose();
                void navigate({ href: String(key) });
              }}
            >
              {({ href, text, about, icon }) => (
                <MenuItem id={href} textValue={text}>
                  <Icon name={icon} />
                  <span className="ellipsis">{text}</span>
                  <span className="end faint">{about}</span>
                </MenuItem>
              )}
            </Menu>
          </Autocomplete>
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}
