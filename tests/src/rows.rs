//! The row of the route table that a request belongs to.

use statewright_shared::api::routes::{ROUTES, Route};

/// The row of a request, such as `GET /api/user`: of those that match, the one with the most literal parts.
pub fn route(line: &str) -> Option<&'static Route> {
    let (method, path) = line.split_once(' ')?;
    let literals = |pattern: &str| {
        let (mut parts, mut literals) = (path.split('/'), 0);
        for part in pattern.split('/') {
            let segment = parts.next()?;
            literals += usize::from(part == segment);
            if part != segment && !part.starts_with('{') {
                return None;
            }
        }
        parts.next().is_none().then_some(literals)
    };
    let rows = ROUTES.iter().filter(|row| row.method.as_str() == method);
    let fits = rows.filter_map(|row| Some((literals(row.path)?, row)));
    fits.max_by_key(|(literals, _)| *literals).map(|(_, row)| row)
}
