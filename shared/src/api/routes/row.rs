//! A row of the table of routes, and the macro that makes a part of the table from its rows.

use std::pin::Pin;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;

use crate::api::app::App;
use crate::api::route::{Group, Route, Serves, Shapes};

/// A part of the table.
pub(super) trait Part {
    /// Its rows.
    const ROUTES: &'static [Route];

    /// The shapes of each row.
    const SHAPES: &'static [Shapes];

    /// The handler of each row that the program serves. Rows do not name handlers, so a program contains only
    /// these.
    fn handlers<S: Serves>() -> Vec<Option<Erased>>;
}

/// A handler with its type erased. The code that turns a handler into a service is long, so it exists only
/// once.
#[derive(Clone, Copy)]
pub(super) struct Erased(pub(super) fn(Request, App) -> Answering);

type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

impl Handler<(), App> for Erased {
    type Future = Answering;
    fn call(self, request: Request, app: App) -> Answering {
        (self.0)(request, app)
    }
}

/// The usual number of copies of a body that a request holds.
pub(super) const BODY_COPIES: usize = 3;

pub(super) const fn has(groups: &[Group], group: Group) -> bool {
    match groups {
        [first, rest @ ..] => *first as u8 == group as u8 || has(rest, group),
        [] => false,
    }
}

pub(super) const fn first<T: Copy>(all: &[T]) -> Option<T> {
    match all {
        [first, ..] => Some(*first),
        [] => None,
    }
}

pub(super) const fn last(all: &[usize]) -> usize {
    match all {
        [.., last] => *last,
        [] => 0,
    }
}

macro_rules! needs {
    (Nothing) => {
        None
    };
    ($right:ident) => {
        Some($crate::domain::role::Right::$right)
    };
}

/// The length of a body, at most.
macro_rules! bytes_max {
    ($body:expr) => {
        $crate::limits::SMALL_BYTES_MAX
    };
    ($body:expr, $max:ident) => {
        $max
    };
}

/// A [`Part`] of the table, with its name and its rows. The columns of a row:
///
/// - its purpose, its method, its path, and its handler;
/// - `auth`: the credentials that it requires. `needs`: the right on what it is about. `group`: the function
///   that serves it. `audit`: the action in the audit log;
/// - `query`: the query parameters that the handler reads. It gets no others;
/// - `body`: the shape of the body; `of::<T>` is what the type `T` reads. `max`: the length of the body in
///   bytes, at most, if that is not `SMALL_BYTES_MAX`. `copies`: the copies of the body that a request holds,
///   if not [`BODY_COPIES`];
/// - `answer`: the answer to a successful request. `id`: its name in the OpenAPI document.
macro_rules! rows {
    ($name:ident $(
        #[doc = $summary:literal]
        $method:ident $path:literal => $handler:path {
            auth: $auth:ident, needs: $needs:ident, group: $group:ident, $(audit: $action:literal,)?
            $(query: [$($parameter:expr),* $(,)?],)?
            $(body: $body:expr, $(max: $max:ident,)? $(copies: $copies:literal,)?)?
            answer: $answer:expr, id: $id:ident,
        }
    )*) => {
        pub(super) enum $name {}

        impl $crate::api::routes::row::Part for $name {
            const ROUTES: &'static [$crate::api::route::Route] = &[$($crate::api::route::Route {
                method: ::axum::http::Method::$method,
                path: $path,
                auth: $crate::api::route::Auth::$auth,
                needs: needs!($needs),
                body_bytes_max: $crate::api::routes::row::last(&[0, $(bytes_max!($body $(, $max)?))?]),
                body_copies: $crate::api::routes::row::last(&[
                    $crate::api::routes::row::BODY_COPIES, $($($copies)?)?
                ]),
                group: $crate::api::route::Group::$group,
                action: $crate::api::routes::row::first(&[$($action)?]),
                query: &[$($($parameter),*)?],
                operation: stringify!($id),
                summary: $summary.trim_ascii(),
            }),*];

            const SHAPES: &'static [$crate::api::route::Shapes] = &[$($crate::api::route::Shapes {
                body: $crate::api::routes::row::first(&[$($body as fn() -> ::serde_json::Value)?]),
                answer: $answer,
            }),*];

            fn handlers<S: $crate::api::route::Serves>() -> Vec<Option<$crate::api::routes::row::Erased>> {
                let handlers = const {
                    [$(if $crate::api::routes::row::has(S::GROUPS, $crate::api::route::Group::$group) {
                        Some($crate::api::routes::row::Erased(|request, app| {
                            ::axum::handler::Handler::call($handler, request, app)
                        }))
                    } else {
                        None
                    }),*]
                };
                handlers.to_vec()
            }
        }
    };
}
