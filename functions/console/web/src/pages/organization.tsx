// The organization: members, teams, grants, tokens, its audit trail, and what was deleted.

import { Outlet } from "@tanstack/react-router";

export { Audit } from "./audit";
export { Deleted } from "./deleted";
export { Grants } from "./grants";
export { Members } from "./members";
export { Teams } from "./teams";
export { Tokens } from "./tokens";

export function Organization() {
  return (
    <div className="page">
      <Outlet />
    </div>
  );
}
