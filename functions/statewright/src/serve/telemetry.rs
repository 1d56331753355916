//! The log on stderr, and the traces.

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

use super::options::{LogFormat, Serve};

/// Lines go to stderr, those of the target `access` one a request; spans go to a collector, if there is one.
pub(super) fn start(args: &Serve) -> anyhow::Result<Traces> {
    let filter = EnvFilter::try_from_env("STATEWRIGHT_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match args.log_format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().with_filter(filter).boxed(),
    };
    let (traces, spans) = traces::start(args)?;
    tracing_subscriber::registry().with(lines).with(spans).init();
    Ok(traces)
}

pub(super) use traces::Traces;

#[cfg(feature = "otlp")]
mod traces {
    use anyhow::Context as _;
    use axum::Router;
    use axum::extract::{MatchedPath, Request};
    use axum::middleware::{Next, from_fn};
    use axum::response::Response;
    use opentelemetry::propagation::TextMapPropagator as _;
    use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
    use opentelemetry_http::HeaderExtractor;
    use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing::field::Empty;
    use tracing::{Instrument as _, Subscriber};
    use tracing_opentelemetry::OpenTelemetrySpanExt as _;
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::registry::LookupSpan;

    use super::Serve;

    /// Where spans go, if anywhere.
    pub(in super::super) struct Traces(Option<SdkTracerProvider>);

    pub(super) fn start<S>(args: &Serve) -> anyhow::Result<(Traces, Option<impl Layer<S> + use<S>>)>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let Some(endpoint) = &args.otlp_endpoint else { return Ok((Traces(None), None)) };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .build()
            .context("cannot send traces to the address in --otlp-endpoint")?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(Resource::builder().with_service_name("statewright").build())
            .build();
        let ours =
            Targets::new().with_targets([("request", LevelFilter::TRACE), ("store", LevelFilter::TRACE)]);
        let layer =
            tracing_opentelemetry::layer().with_tracer(provider.tracer("statewright")).with_filter(ours);
        Ok((Traces(Some(provider)), Some(layer)))
    }

    impl Traces {
        /// A router whose requests have a span each, below that of the client where it sends one.
        pub(in super::super) fn of(&self, router: Router) -> Router {
            if self.0.is_some() { router.layer(from_fn(span)) } else { router }
        }

        /// Sends what is left.
        pub(in super::super) async fn finish(self) {
            let Some(provider) = self.0 else { return };
            let finished = tokio::task::spawn_blocking(move || provider.shutdown()).await;
            if let Ok(Err(error)) = finished {
                tracing::warn!(%error, "the last traces were not sent");
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
        // A refusal says that nobody collects this span.
        let _ = span.set_parent(parent);
        let response = next.run(request).instrument(span.clone()).await;
        if let Some(route) = response.extensions().get::<MatchedPath>().map(MatchedPath::as_str) {
            span.record("http.route", route);
            // A recorded name is not taken once the span has begun.
            span.context().span().update_name(format!("{method} {route}"));
        }
        span.record("http.response.status_code", response.status().as_u16());
        if let Some(id) = response.headers().get("X-Pulumi-Request-ID").and_then(|id| id.to_str().ok()) {
            span.record("request_id", id);
        }
        response
    }
}

#[cfg(not(feature = "otlp"))]
mod traces {
    use axum::Router;
    use tracing_subscriber::layer::Identity;

    use super::Serve;

    /// None: this binary was built without them.
    pub(in super::super) struct Traces;

    #[expect(clippy::unnecessary_wraps, reason = "the other one of this name can fail")]
    pub(super) fn start(_: &Serve) -> anyhow::Result<(Traces, Identity)> {
        Ok((Traces, Identity::new()))
    }

    impl Traces {
        pub(in super::super) fn of(&self, router: Router) -> Router {
            router
        }

        pub(in super::super) async fn finish(self) {}
    }
}
