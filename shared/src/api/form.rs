//! The forms of pages.

use std::collections::HashMap;

use axum::extract::{FromRequest, Request};

use super::app::App;
use super::body::Body;
use super::error::Failure;
use crate::services::error::SignInError;

/// The fields of a form. Of a repeated field, the last counts.
pub(super) struct Form(HashMap<String, String>);

impl Form {
    /// A field; empty if the form does not have it.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// A field that the form has to have.
    ///
    /// # Errors
    /// [`SignInError::BadField`].
    pub(super) fn needed(&self, name: &'static str) -> Result<&str, Failure> {
        match self.text(name) {
            "" => Err(SignInError::BadField(name).into()),
            text => Ok(text),
        }
    }
}

impl FromRequest<App> for Form {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        let body = Body::from_request(request, app).await?;
        Ok(Self(form_urlencoded::parse(&body.into_text()).into_owned().collect()))
    }
}
