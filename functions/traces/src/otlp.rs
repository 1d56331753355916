use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::field::Empty;
use tracing::{Instrument as _, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

use super::NoCollector;

/// The exporter of spans, if there is a collector.
#[derive(Debug, Clone)]
pub struct Traces(Option<SdkTracerProvider>);

/// Starts sending spans to the collector at this address, if there is one, with this timeout for each batch.
/// The layer collects the spans.
///
/// # Errors
/// If the address is invalid.
pub fn start<S>(
    endpoint: Option<&str>,
    timeout: Duration,
) -> Result<(Traces, Option<impl Layer<S> + use<S>>), NoCollector>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let Some(endpoint) = endpoint else { return Ok((Traces(None), None)) };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_timeout(timeout)
        .build()
        .map_err(|error| NoCollector(endpoint.to_owned(), error.into()))?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name("statewright").build())
        .build();
    let ours = Targets::new().with_targets([("request", LevelFilter::TRACE), ("store", LevelFilter::TRACE)]);
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("statewright")).with_filter(ours);
    Ok((Traces(Some(provider)), Some(layer)))
}

impl Traces {
    /// Adds a span to each request, as a child of the client's span if the request has one.
    pub fn of(&self, router: Router) -> Router {
        if self.0.is_some() { router.layer(from_fn(span)) } else { router }
    }

    /// Sends the collected spans and waits for that.
    pub async fn flush(&self) {
        self.send(|provider| provider.force_flush()).await;
    }

    /// Sends the remaining spans and stops.
    pub async fn finish(self) {
        self.send(|provider| provider.shutdown()).await;
    }

    async fn send(&self, send: impl FnOnce(SdkTracerProvider) -> OTelSdkResult + Send + 'static) {
        let Some(provider) = self.0.clone() else { return };
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || send(provider)).await {
            tracing::warn!(%error, "cannot send traces");
        }
    }
}

async fn span(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let span = tracing::trace_span!(
        target: "request",
        "request",
        otel.name = method.as_str(),
        otel.kind = "server",
        http.request.method = method.as_str(),
        http.route = Empty,
        http.response.status_code = Empty,
        request_id = Empty,
    );
    let parent = TraceContextPropagator::new().extract(&HeaderExtractor(request.headers()));
    // An error means that the span is not collected.
    let _ = span.set_parent(parent);
    let response = next.run(request).instrument(span.clone()).await;
    if let Some(route) = response.extensions().get::<MatchedPath>().map(MatchedPath::as_str) {
        span.record("http.route", route);
        // A name recorded as a field is ignored once the span has begun.
        span.context().span().update_name(format!("{method} {route}"));
    }
    span.record("http.response.status_code", response.status().as_u16());
    if let Some(id) = response.headers().get("X-Pulumi-Request-ID").and_then(|id| id.to_str().ok()) {
        span.record("request_id", id);
    }
    response
}
