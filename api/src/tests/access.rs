//! Who may use which route, as a table: `docs/reference/access.md`.

use std::fmt::Write;

use agentsvc_components::kernel::scope::Role;

use super::page::MADE;
use crate::DOMAINS;
use crate::http::principal::{Verdict, decide};
use crate::http::route::{Auth, Route};

/// The page.
pub(crate) fn page() -> String {
    let mut page = format!(
        "{MADE}\n# Who may use which route\n\n`yes`: everything. `own`: what belongs to the user, and 404 for the rest. `no`: 403. \
         `anyone`: no key is needed, or the route asks for proof of its own. `public part`: as without a \
         key. A key with `scopes` may use a route if it has all scopes of the route. The key of the configuration is an owner. See [users.md](../users.md).\n\n\
         | method | path | scope | owner | admin | user | viewer |\n| --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for route in DOMAINS.table().routes() {
        let scopes: Vec<_> = route.scopes().filter(|_| !route.auth.is_keyless()).map(|scope| scope.as_str()).collect();
        let _ = write!(page, "| {} | `{}` | {} |", route.verb.as_str(), route.path, scopes.join(", "));
        for role in Role::ALL.into_iter().rev() {
            let _ = write!(page, " {} |", cell(role, route));
        }
        page.push('\n');
    }
    page
}

fn cell(role: Role, route: &Route) -> &'static str {
    match decide(role, &[], route) {
        _ if route.auth.is_keyless() => "anyone",
        Verdict::All => "yes",
        Verdict::Own => "own",
        Verdict::Refused if route.auth == Auth::Optional => "public part",
        Verdict::Refused => "no",
    }
}

/// What a person who reads the table would be surprised by.
#[test]
fn no_viewer_changes_anything_and_no_user_reaches_the_installation() {
    for route in DOMAINS.table().routes().iter().filter(|route| !route.auth.is_keyless()) {
        let (viewer, user) = (cell(Role::Viewer, route), cell(Role::User, route));
        let is_read = route.verb.as_str() == "GET";
        // Everybody ends their own sessions.
        let is_own_session = (route.verb.as_str(), route.path) == ("DELETE", "/api/auth/sessions/{id}");
        let is_refused = ["no", "public part"].contains(&viewer);
        assert!(is_read || is_own_session || is_refused, "{} {}: a viewer may", route.verb.as_str(), route.path);
        assert!(is_refused || user != "no", "{}: a viewer may, and a user may not", route.path);
        for secret in
            ["/api/config", "/api/backup", "/api/keys", "/api/users", "/api/audit", "/api/shutdown", "/api/world"]
        {
            assert!(!route.path.starts_with(secret) || user == "no", "{}: a user may", route.path);
        }
        // It holds the key of an owner.
        let is_for_owners = (route.verb.as_str(), route.path) == ("GET", "/api/backups/{filename}");
        let admin = if is_for_owners { "no" } else { "yes" };
        assert_eq!((cell(Role::Owner, route), cell(Role::Admin, route)), ("yes", admin), "{}", route.path);
    }
}
