//! Processes of functions, and the Runtime API from which they get events.
//!
//! Source: AWS Lambda, "Using the Lambda runtime API for custom runtimes", version 2018-06-01.

use std::collections::HashMap;
use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use rustix::process::{Pid, Signal, kill_process};
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::ports::{Clock as _, Ids as _};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::{Between, Function, LogLines};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvokeError {
    /// There is no such function.
    Unknown,
    /// The program could not be started.
    NotStarted(String),
    /// The process ended before it answered.
    Died,
    /// It answered with an error.
    Failed(String),
    /// It did not answer in time, and is killed.
    TimedOut,
}

type Outcome = Result<Bytes, InvokeError>;

struct Event {
    id: String,
    body: Bytes,
    deadline_ms: i64,
    answer: oneshot::Sender<Outcome>,
}

/// A process of a function.
struct Process {
    pid: Option<Pid>,
    give: mpsc::Sender<Event>,
    take: tokio::sync::Mutex<mpsc::Receiver<Event>>,
    answering: Mutex<Option<(String, oneshot::Sender<Outcome>)>>,
    ended: watch::Receiver<bool>,
    between: Between,
}

impl Process {
    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid
            && !*self.ended.borrow()
        {
            // A process that has just ended needs no signal.
            let _ = kill_process(pid, signal);
        }
    }

    fn answer(&self, id: &str, outcome: Outcome) -> bool {
        let mut answering = self.answering.lock().unwrap_or_else(PoisonError::into_inner);
        match answering.take_if(|(expected, _)| expected == id) {
            Some((_, answer)) => answer.send(outcome).is_ok(),
            None => false,
        }
    }
}

struct Fleet {
    function: Function,
    idle: Mutex<Vec<Arc<Process>>>,
    room: Semaphore,
    started: AtomicUsize,
}

/// The waiting processes, by the name in the path that they request.
type Asking = Arc<Mutex<HashMap<String, Arc<Process>>>>;

/// All functions, and the address that their processes call.
pub(crate) struct Runtime {
    fleets: HashMap<String, Fleet>,
    asking: Asking,
    between: Between,
    log: LogLines,
    address: String,
    server: JoinHandle<()>,
}

impl Runtime {
    pub(crate) async fn start(
        functions: Vec<Function>,
        between: Between,
        processes_max: usize,
        log: LogLines,
    ) -> io::Result<Self> {
        let asking = Asking::default();
        let router = Router::new()
            .route("/{process}/2018-06-01/runtime/invocation/next", get(next))
            .route("/{process}/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/{process}/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/{process}/2018-06-01/runtime/init/error", post(|| async { StatusCode::ACCEPTED }))
            .with_state(Arc::clone(&asking));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let server = tokio::spawn(async move {
            // An error of a connection means that a process ended; no error ends the listener.
            let _ = axum::serve(listener, router).await;
        });
        let fleet = |function: Function| Fleet {
            function,
            idle: Mutex::default(),
            room: Semaphore::new(processes_max.max(1)),
            started: AtomicUsize::new(0),
        };
        let fleets = functions.into_iter().map(|function| (function.name.clone(), fleet(function))).collect();
        Ok(Self { fleets, asking, between, log, address, server })
    }

    /// Sends a function an event and waits for its answer. The event continues if the caller stops waiting.
    pub(crate) async fn invoke(self: Arc<Self>, function: String, body: Bytes, within: Duration) -> Outcome {
        let answered = tokio::spawn(async move { self.run(&function, body, within).await });
        answered.await.unwrap_or(Err(InvokeError::Died))
    }

    async fn run(&self, function: &str, body: Bytes, within: Duration) -> Outcome {
        let fleet = self.fleets.get(function).ok_or(InvokeError::Unknown)?;
        let Ok(_room) = fleet.room.acquire().await else { return Err(InvokeError::Died) };
        let process = match fleet.take_idle() {
            Some(process) => process,
            None => self.start_process(fleet).map_err(|error| InvokeError::NotStarted(error.to_string()))?,
        };
        let (answer, answered) = oneshot::channel();
        let deadline_ms = SystemClock.now().plus(within).0 / 1_000_000;
        let event = Event { id: SystemIds.uuid().to_string(), body, deadline_ms, answer };
        let mut ended = process.ended.clone();
        let outcome = async {
            process.give.send(event).await.map_err(|_| InvokeError::Died)?;
            tokio::select! {
                biased;
                outcome = answered => outcome.unwrap_or(Err(InvokeError::Died)),
                _ = ended.wait_for(|ended| *ended) => Err(InvokeError::Died),
                () = SystemClock.sleep(within) => Err(InvokeError::TimedOut),
            }
        }
        .await;
        // A function that reports a failure continues with the next event.
        if matches!(outcome, Ok(_) | Err(InvokeError::Failed(_))) && self.between != Between::Killed {
            fleet.idle.lock().unwrap_or_else(PoisonError::into_inner).push(process);
        } else {
            process.signal(Signal::KILL);
        }
        outcome
    }

    fn start_process(&self, fleet: &Fleet) -> io::Result<Arc<Process>> {
        let Function { name, program, environment } = &fleet.function;
        let number = fleet.started.fetch_add(1, Ordering::Relaxed) + 1;
        let asks_as = format!("{name}-{number}");
        let mut child = Command::new(program)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .env("AWS_LAMBDA_RUNTIME_API", format!("http://{}/{asks_as}", self.address))
            .env("AWS_LAMBDA_FUNCTION_NAME", name)
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        self.read_lines(name, child.stdout.take());
        self.read_lines(name, child.stderr.take());
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let (give, take) = mpsc::channel(1);
        let (end, ended) = watch::channel(false);
        let asking = Arc::clone(&self.asking);
        let process = Arc::new(Process {
            pid,
            give,
            take: tokio::sync::Mutex::new(take),
            answering: Mutex::default(),
            ended,
            between: self.between,
        });
        asking.lock().unwrap_or_else(PoisonError::into_inner).insert(asks_as.clone(), Arc::clone(&process));
        tokio::spawn(async move {
            // However it ended, the process is gone.
            let _ = child.wait().await;
            end.send_replace(true);
            asking.lock().unwrap_or_else(PoisonError::into_inner).remove(&asks_as);
        });
        Ok(process)
    }

    fn read_lines(&self, function: &str, from: Option<impl AsyncRead + Unpin + Send + 'static>) {
        let Some(from) = from else { return };
        let (log, function) = (Arc::clone(&self.log), function.to_owned());
        tokio::spawn(async move {
            let mut lines = BufReader::new(from).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                log(&function, &line);
            }
        });
    }

    pub(crate) fn kill(&self, function: &str) {
        let Some(fleet) = self.fleets.get(function) else { return };
        // Prefer waiting processes, so that no event goes to one that is about to be killed.
        fleet.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let prefix = format!("{function}-");
        let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        asking
            .iter()
            .filter(|(name, _)| name.starts_with(&prefix))
            .for_each(|(_, process)| process.signal(Signal::KILL));
    }

    pub(crate) fn started(&self, function: &str) -> usize {
        self.fleets.get(function).map_or(0, |fleet| fleet.started.load(Ordering::Relaxed))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.server.abort();
        let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        asking.values().for_each(|process| process.signal(Signal::KILL));
    }
}

impl Fleet {
    fn take_idle(&self) -> Option<Arc<Process>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(process) = idle.pop() {
            if !*process.ended.borrow() {
                return Some(process);
            }
        }
        None
    }
}

fn process(asking: &Asking, name: &str) -> Option<Arc<Process>> {
    asking.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// The next event: answered when there is one.
async fn next(State(asking): State<Asking>, Path(name): Path<String>) -> Response {
    let Some(process) = process(&asking, &name) else { return StatusCode::NOT_FOUND.into_response() };
    let mut take = process.take.lock().await;
    let event = match take.try_recv() {
        Ok(event) => Some(event),
        Err(_) if process.between == Between::Frozen => {
            process.signal(Signal::STOP);
            let event = take.recv().await;
            process.signal(Signal::CONT);
            event
        }
        Err(_) => take.recv().await,
    };
    let Some(Event { id, body, deadline_ms, answer }) = event else {
        return StatusCode::GONE.into_response();
    };
    let headers = [
        ("Lambda-Runtime-Aws-Request-Id", id.clone()),
        ("Lambda-Runtime-Deadline-Ms", deadline_ms.to_string()),
        ("Lambda-Runtime-Invoked-Function-Arn", format!("arn:aws:lambda:local:123456789012:function:{name}")),
        ("Lambda-Runtime-Trace-Id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0".to_owned()),
        ("Content-Type", "application/json".to_owned()),
    ];
    *process.answering.lock().unwrap_or_else(PoisonError::into_inner) = Some((id, answer));
    (headers, body).into_response()
}

async fn response(
    State(asking): State<Asking>,
    Path((name, id)): Path<(String, String)>,
    body: Body,
) -> StatusCode {
    finish(&asking, &name, &id, body, Ok).await
}

async fn error(
    State(asking): State<Asking>,
    Path((name, id)): Path<(String, String)>,
    body: Body,
) -> StatusCode {
    let failed = |body: Bytes| Err(InvokeError::Failed(String::from_utf8_lossy(&body).into_owned()));
    finish(&asking, &name, &id, body, failed).await
}

async fn finish(
    asking: &Asking,
    name: &str,
    id: &str,
    body: Body,
    outcome: impl FnOnce(Bytes) -> Outcome,
) -> StatusCode {
    // The gateway checks the length.
    let Ok(body) = to_bytes(body, usize::MAX).await else { return StatusCode::BAD_REQUEST };
    match process(asking, name) {
        Some(process) if process.answer(id, outcome(body)) => StatusCode::ACCEPTED,
        Some(_) | None => StatusCode::BAD_REQUEST,
    }
}
