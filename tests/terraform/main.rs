//! States with the real clients: what users do with them, and their complaints about other backends.

#![expect(clippy::unwrap_used, reason = "a test without its preconditions stops there")]

/// A test with both clients: `tofu` and `terraform` are modules with a test of each name.
macro_rules! journeys {
    ($($(#[$doc:meta])* $name:ident)*) => {
        mod tofu {
            $($(#[$doc])* #[tokio::test] async fn $name() { super::$name(super::Client::Tofu).await; })*
        }
        mod terraform {
            $(
                $(#[$doc])*
                #[tokio::test]
                #[cfg_attr(not(feature = "terraform"), ignore = "drives Terraform 1.5.7, which `.ci/run` builds")]
                async fn $name() { super::$name(super::Client::Terraform).await; }
            )*
        }
    };
}

mod aws;
mod commands;
mod console;
mod credentials;
mod dependencies;
mod edits;
mod functions;
mod labels;
mod lifecycle;
mod locks;
mod protection;
mod roles;
mod runs;
mod support;
