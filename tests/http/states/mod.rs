//! States of OpenTofu and Terraform.

pub(crate) mod labels;
pub(crate) mod lifecycle;
pub(crate) mod long;
pub(crate) mod resources;
