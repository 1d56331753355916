//! A browser without a screen: it keeps cookies, says where its requests come from, and shows where it is led.

use std::collections::BTreeMap;

use reqwest::{Method, StatusCode};

use crate::fake_provider::FakeProvider;

/// A browser with its cookies.
pub struct Visitor {
    url: String,
    http: reqwest::Client,
    pub cookies: BTreeMap<String, String>,
}

/// What a visitor sees.
#[derive(Debug)]
pub struct Shown {
    pub status: StatusCode,
    pub leads_to: String,
    pub text: String,
    pub headers: reqwest::header::HeaderMap,
}

impl Shown {
    /// Expects that it leads here.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn leads(&self, to: &str) {
        assert_eq!((self.status.as_u16(), self.leads_to.as_str()), (303, to), "{}", self.text);
    }

    /// The message of a page with this status.
    ///
    /// # Panics
    /// If it has another one.
    #[track_caller]
    pub fn refuses(&self, status: u16) -> String {
        assert_eq!(self.status.as_u16(), status, "{} {}", self.leads_to, self.text);
        let alert =
            self.text.split("role=\"alert\">").nth(1).unwrap_or_else(|| panic!("no alert: {}", self.text));
        alert.split("</p>").next().expect("as sent").replace("&quot;", "\"")
    }
}

impl Visitor {
    pub fn new(url: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        Self { url: url.to_owned(), http: http.build().expect("as sent"), cookies: BTreeMap::new() }
    }

    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        site: &str,
        form: Option<&[(&str, &str)]>,
    ) -> Shown {
        let url = if path.starts_with('/') { format!("{}{path}", self.url) } else { path.to_owned() };
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request =
            self.http.request(method, url).header("Accept", "text/html").header("User-Agent", "Test/1");
        request = request.header("Sec-Fetch-Site", site).header("Cookie", cookies.join("; "));
        if let Some(form) = form {
            request = request.form(form).header("Origin", "null");
        }
        let answer = request.send().await.expect("as sent");
        for cookie in answer.headers().get_all("set-cookie") {
            let text = cookie.to_str().expect("as sent");
            assert!(text.contains("; Path=/; HttpOnly; SameSite=Lax"), "{text}");
            let (name, value) = text.split(';').next().expect("as sent").split_once('=').expect("as sent");
            match text.contains("Max-Age=0") {
                true => drop(self.cookies.remove(name)),
                false => drop(self.cookies.insert(name.to_owned(), value.to_owned())),
            }
        }
        let leads_to =
            answer.headers().get("location").map_or("", |to| to.to_str().expect("as sent")).to_owned();
        let (status, headers) = (answer.status(), answer.headers().clone());
        Shown { status, leads_to, headers, text: answer.text().await.expect("as sent") }
    }

    /// Opens a page by a link or by hand.
    pub async fn open(&mut self, path: &str) -> Shown {
        self.send(Method::GET, path, "none", None).await
    }

    /// Sends the form of a page of this server.
    pub async fn submit(&mut self, path: &str, form: &[(&str, &str)]) -> Shown {
        self.send(Method::POST, path, "same-origin", Some(form)).await
    }

    /// Signs in at a provider as this subject, up to the answer of the callback.
    pub async fn sign_in(&mut self, provider: &FakeProvider, name: &str, subject: &str) -> Shown {
        let led = self.open(&format!("/signin/{name}")).await;
        assert_eq!(led.status.as_u16(), 303, "{}", led.text);
        let query = provider.sign_in(&led.leads_to, subject);
        self.send(Method::GET, &format!("/signin/{name}/callback?{query}"), "cross-site", None).await
    }

    /// The user who is signed in.
    pub async fn user(&mut self) -> Option<String> {
        let page = self.open("/signout").await;
        (page.status == 200).then(|| {
            let rest = page.text.split("You are signed in as <strong>").nth(1).expect("as sent");
            rest.split('<').next().expect("as sent").to_owned()
        })
    }
}
