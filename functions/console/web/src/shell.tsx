// What is around every page: where one is, the way to everything else, and one's own user.

import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useParams, useRouterState } from "@tanstack/react-router";
import { Suspense, lazy, useEffect, useRef, useState } from "react";
import { Button, Header, Menu, MenuItem, MenuSection, MenuTrigger, Popover } from "react-aria-components";
import * as queries from "./api/queries";
import { useRights } from "./rights";
import { type Theme, setTheme, useTheme } from "./theme";
import { isDialogOpen } from "./ui/focus";
import { Icon, type IconName } from "./ui/icons";
import { Leaving } from "./ui/leaving";
import { SessionOver } from "./ui/parts";

const Palette = lazy(() => import("./palette"));

const THEMES: [Theme, string, IconName][] = [
  ["system", "As the system", "screen"],
  ["light", "Light", "sun"],
  ["dark", "Dark", "moon"],
];

function UserMenu({ login }: { login: string }) {
  const theme = useTheme();
  return (
    <MenuTrigger>
      <Button className="top-button" aria-label={`Your user, ${login}`}>
        <Icon name="person" />
        <span className="wide">{login}</span>
        <Icon name="down" />
      </Button>
      <Popover className="popover" placement="bottom end">
        <Menu className="menu" onAction={(key) => setTheme(String(key) as Theme)}>
          <MenuSection>
            <Header>{login}</Header>
            <MenuItem href="/user/settings/account">Account and sessions</MenuItem>
            <MenuItem href="/user/settings/tokens">Your access tokens</MenuItem>
            <MenuItem href="/signout">Sign out</MenuItem>
          </MenuSection>
          <MenuSection>
            <Header>Theme</Header>
            {THEMES.map(([id, text, icon]) => (
              <MenuItem key={id} id={id} textValue={text}>
                <Icon name={icon} />
                {text}
                {theme === id && (
                  <span className="end">
                    <Icon name="check" />
                    <span className="unseen">, chosen</span>
                  </span>
                )}
              </MenuItem>
            ))}
          </MenuSection>
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}

function OrgMenu({ org, all }: { org: string; all: string[] }) {
  if (all.length < 2) {
    return (
      <Link className="org-name" to="/$org" params={{ org }}>
        {org}
      </Link>
    );
  }
  return (
    <MenuTrigger>
      <Button className="top-button org-name" aria-label={`Organization ${org}`}>
        {org}
        <Icon name="down" />
      </Button>
      <Popover className="popover">
        <Menu className="menu">
          {all.map((name) => (
            <MenuItem key={name} href={`/${encodeURIComponent(name)}`}>
              {name}
            </MenuItem>
          ))}
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}

function Nav({ org, path }: { org: string; path: string }) {
  const nav = useRef<HTMLElement>(null);
  const { may, isServerAdmin } = useRights(org);
  const isAdmin = may("admin");
  // On a phone, the link of the page may be outside what is seen.
  useEffect(() => {
    const box = nav.current;
    const link = box?.querySelector(".active")?.getBoundingClientRect();
    // Not `scrollIntoView`, which also moves where the Tab key begins.
    if (box && link) box.scrollLeft += link.left + link.width / 2 - box.clientWidth / 2;
  }, [path]);
  // The pages of one stack or state belong to the list of them.
  const isOfOne = /^\/[^/]+\/(-\/states\/|(?!-\/|esc\/[^/]+\/)[^/]+\/[^/]+)/.test(path);
  const isEnvironment = /^\/[^/]+\/esc\/[^/]+\/[^/]/.test(path);
  return (
    <nav ref={nav} className="nav" aria-label="Organization">
      <Link to="/$org" params={{ org }} activeOptions={{ exact: true }}>
        Home
      </Link>
      <Link
        className={isOfOne ? "active" : ""}
        to="/$org/-/stacks"
        params={{ org }}
        activeOptions={{ includeSearch: false }}
      >
        Stacks and states
      </Link>
      <Link
        className={isEnvironment ? "active" : ""}
        to="/$org/-/environments"
        params={{ org }}
        activeOptions={{ includeSearch: false }}
      >
        Environments
      </Link>
      <Link to="/$org/-/dependencies" params={{ org }} activeOptions={{ includeSearch: false }}>
        Dependencies
      </Link>
      <Link to="/$org/-/locks" params={{ org }}>
        Locks
      </Link>
      <Link to="/$org/-/members" params={{ org }}>
        Members
      </Link>
      <Link to="/$org/-/teams" params={{ org }}>
        Teams
      </Link>
      <Link to="/$org/-/grants" params={{ org }} activeOptions={{ includeSearch: false }}>
        Grants
      </Link>
      <Link to="/$org/-/tokens" params={{ org }} activeOptions={{ includeSearch: false }}>
        Tokens
      </Link>
      {may("audit") && (
        <Link to="/$org/-/audit" params={{ org }} activeOptions={{ includeSearch: false }}>
          Audit trail
        </Link>
      )}
      <Link to="/$org/-/deleted" params={{ org }}>
        Deleted
      </Link>
      {isAdmin && (
        <Link to="/$org/-/issuers" params={{ org }}>
          Issuers
        </Link>
      )}
      <Link to="/$org/-/labels" params={{ org }}>
        Labels
      </Link>
      {isServerAdmin && (
        <Link to="/$org/-/operator" params={{ org }}>
          Server
        </Link>
      )}
    </nav>
  );
}

export function Shell() {
  const { org } = useParams({ strict: false });
  const user = useQuery(queries.user);
  const [isOpen, setOpen] = useState(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const main = useRef<HTMLElement>(null);
  const before = useRef(path);

  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        // To go elsewhere would drop what a dialog holds.
        setOpen((isOpen) => !isOpen && !isDialogOpen());
      }
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, []);

  // A new page begins at its start for the keyboard and for a screen reader too. The start page leads on by itself.
  useEffect(() => {
    if (before.current !== path && before.current !== "/") main.current?.focus({ preventScroll: true });
    before.current = path;
  }, [path]);

  const organizations = user.data?.organizations.map((one) => one.githubLogin) ?? [];
  const shown = org !== undefined && organizations.includes(org) ? org : undefined;
  return (
    <>
      <a className="skip" href="#main">
        To the content
      </a>
      <header className="top">
        <div className="bar">
          <Link className="brand" to="/" aria-label="Statewright, start">
            <svg viewBox="0 0 32 32" aria-hidden="true">
              <rect width="32" height="32" rx="7" />
              <path d="M8 10.500h16M8 16h11M8 21.500h14" />
            </svg>
            <span className="wide">Statewright</span>
          </Link>
          {shown !== undefined && (
            <>
              <span className="slash" aria-hidden="true">
                /
              </span>
              <OrgMenu org={shown} all={organizations} />
            </>
          )}
          <span className="spring" />
          {shown !== undefined && (
            <Button className="top-button find" onPress={() => setOpen(true)} aria-label="Go to… Ctrl K">
              <Icon name="search" />
              <span className="wide">Go to…</span>
              <kbd className="wide">Ctrl K</kbd>
            </Button>
          )}
          {user.data && <UserMenu login={user.data.githubLogin} />}
        </div>
        {shown !== undefined && <Nav org={shown} path={path} />}
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <SessionOver />
        <Outlet />
      </main>
      {isOpen && shown !== undefined && (
        <Suspense>
          <Palette org={shown} onClose={() => setOpen(false)} />
        </Suspense>
      )}
      <Leaving />
    </>
  );
}
