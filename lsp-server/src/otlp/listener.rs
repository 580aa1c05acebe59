//! Ports and connections: everything from the start of a receiver to its end.
//!
//! Both ports take gRPC and HTTP: a connection says with its first bytes which version of HTTP
//! it speaks, and the content type of a request says the rest. So a sender that has the two
//! mixed up is served all the same.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Version, server::conn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::{Limits, OtlpEncoding, decode_otlp_request};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

use super::reply::{self, Content};
use super::request::{self, Form, MAX_BYTES, PERMIT, Received, Refusal};
use super::window::{Added, Window};

/// Most connections at a time.
const MAX_CONNECTIONS: usize = 256;
/// Most requests whose bodies have come and that wait to be decoded.
const MAX_WAITING: usize = 256;
/// Memory for bodies of all requests together.
const BODY_MEMORY: usize = 3 * MAX_BYTES;
/// Most frames in all samples of a request.
const MAX_FRAMES: usize = 1 << 24;
/// A connection has this long for its first bytes, and for the head of each request.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// A connection without a request is closed after this.
const IDLE: Duration = Duration::from_mins(5);
/// What every connection on HTTP/2 begins with.
const HTTP2: &[u8] = b"PRI ";

/// Where to listen, and how much to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The port for gRPC; 0 lets the system choose.
    pub grpc_port: u16,
    /// The port for HTTP; 0 lets the system choose.
    pub http_port: u16,
    /// How long what comes is kept.
    pub window: Duration,
    /// How many bytes of it.
    pub bytes: usize,
}

/// The receiver could not start; displays as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Somebody else has the port.
    #[error(
        "port {0} for OTLP is in use, perhaps by another window or a collector, so no profiles are received here; \
         close that, or set another otlp.grpcPort and otlp.httpPort"
    )]
    Busy(u16),
    /// The system refused.
    #[error("port {0} for OTLP can't be listened on: {1}")]
    Io(u16, io::Error),
    /// There is no thread to be had.
    #[error("the receiver for OTLP can't be started: {0}")]
    Thread(io::Error),
}

/// A receiver at work; dropping it closes its ports and connections.
#[derive(Debug)]
pub struct Receiver {
    /// What it was started with.
    pub settings: Settings,
    /// The port for gRPC.
    pub grpc_port: u16,
    /// The port for HTTP.
    pub http_port: u16,
    /// What came.
    pub window: Arc<Window>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Begins to listen.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let window = Arc::new(Window::new(settings.window, settings.bytes));
        let (stop, stopped) = oneshot::channel();
        let (started, start) = mpsc::channel();
        let own = Arc::clone(&window);
        let thread = std::thread::Builder::new()
            .name("otlp".to_owned())
            .spawn(move || run(settings, own, &started, stopped))
            .map_err(StartError::Thread)?;
        let ended = || StartError::Thread(io::Error::other("it ended at once"));
        let (grpc_port, http_port) = start.recv().map_err(|_| ended())??;
        Ok(Self { settings, grpc_port, http_port, window, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.stop.take());
        // The ports are free when this returns; what is being decoded is not waited for.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Started = mpsc::Sender<Result<(u16, u16), StartError>>;

fn run(settings: Settings, window: Arc<Window>, started: &Started, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // One decodes, one waits for names of hosts, which nobody here asks for.
        .max_blocking_threads(1)
        .thread_name("otlp-decoder")
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return drop(started.send(Err(StartError::Thread(error)))),
    };
    runtime.block_on(async {
        let ports = match listen(settings).await {
            Ok(ports) => ports,
            Err(error) => return drop(started.send(Err(error))),
        };
        let shared = Arc::new(Shared {
            window,
            memory: Arc::new(Semaphore::new(BODY_MEMORY / PERMIT)),
            waiting: Semaphore::new(MAX_WAITING),
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        });
        let [grpc, http] = ports;
        if started.send(Ok((grpc.number, http.number))).is_err() {
            return;
        }
        let mut accepting = JoinSet::new();
        for listener in [grpc.v4, http.v4].into_iter().chain(grpc.v6).chain(http.v6) {
            accepting.spawn(accept(listener, Arc::clone(&shared)));
        }
        let _ = stopped.await;
        // Dropped with this: listeners, and every connection they have.
    });
    runtime.shutdown_background();
}

/// One port, on both addresses that `localhost` can mean.
struct Port {
    number: u16,
    v4: TcpListener,
    v6: Option<TcpListener>,
}

async fn listen(settings: Settings) -> Result<[Port; 2], StartError> {
    Ok([listen_on(settings.grpc_port).await?, listen_on(settings.http_port).await?])
}

async fn listen_on(port: u16) -> Result<Port, StartError> {
    let failed = |port, error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => StartError::Busy(port),
        _ => StartError::Io(port, error),
    };
    let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(|error| failed(port, error))?;
    let own = v4.local_addr().map_err(|error| StartError::Io(port, error))?.port();
    let v6 = match TcpListener::bind((Ipv6Addr::LOCALHOST, own)).await {
        Ok(listener) => Some(listener),
        // Senders may try this one first, and would find somebody else.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && port != 0 => return Err(StartError::Busy(port)),
        // A machine without it.
        Err(_) => None,
    };
    Ok(Port { number: own, v4, v6 })
}

/// What all connections have in common.
struct Shared {
    window: Arc<Window>,
    memory: Arc<Semaphore>,
    waiting: Semaphore,
    connections: Arc<Semaphore>,
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut serving = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = serving.join_next() => continue,
        };
        let Ok((stream, peer)) = accepted else {
            // No more files, mostly: somebody has to close some first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(held) = Arc::clone(&shared.connections).try_acquire_owned() else {
            shared.window.refused("too many connections");
            continue;
        };
        if !is_loopback(peer) {
            continue;
        }
        let shared = Arc::clone(&shared);
        serving.spawn(async move {
            serve(stream, shared).await;
            drop(held);
        });
    }
}

fn is_loopback(peer: SocketAddr) -> bool {
    peer.ip().to_canonical().is_loopback()
}

/// When a connection was last of use.
struct Activity {
    start: Instant,
    open: AtomicUsize,
    last: AtomicU64,
}

impl Activity {
    fn begin(self: &Arc<Self>) -> Busy {
        self.open.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_secs()
    }

    fn is_idle(&self) -> bool {
        let since = self.now().saturating_sub(self.last.load(Ordering::Relaxed));
        self.open.load(Ordering::Relaxed) == 0 && since >= IDLE.as_secs()
    }
}

/// A request under way. It is over when this is dropped, also where its sender gives it up.
struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.last.store(self.0.now(), Ordering::Relaxed);
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let Ok(Some(is_http2)) = tokio::time::timeout(HEAD_PATIENCE, speaks_http2(&stream)).await else { return };
    let activity = Arc::new(Activity { start: Instant::now(), open: AtomicUsize::new(0), last: AtomicU64::new(0) });
    let service = {
        let activity = Arc::clone(&activity);
        service_fn(move |request| {
            let (shared, activity) = (Arc::clone(&shared), Arc::clone(&activity));
            async move {
                let _busy = activity.begin();
                Ok::<_, Infallible>(answer(request, &shared).await)
            }
        })
    };
    let stream = TokioIo::new(stream);
    let idle = async {
        while !activity.is_idle() {
            tokio::time::sleep(IDLE / 10).await;
        }
    };
    // How a connection ends is nobody's business here.
    if is_http2 {
        let connection = conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(64)
            .max_header_list_size(16 << 10)
            .keep_alive_interval(Duration::from_secs(30))
            .serve_connection(stream, service);
        tokio::select! { _ = connection => {}, () = idle => {} }
    } else {
        let connection = conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_PATIENCE)
            .max_buf_size(64 << 10)
            .serve_connection(stream, service);
        tokio::select! { _ = connection => {}, () = idle => {} }
    }
}

/// Whether a connection begins like one of HTTP/2; `None` when it ends before it says so.
async fn speaks_http2(stream: &TcpStream) -> Option<bool> {
    let mut head = [0; HTTP2.len()];
    loop {
        let length = stream.peek(&mut head).await.ok().filter(|&length| length > 0)?;
        if length == HTTP2.len() || !HTTP2.starts_with(&head[..length]) {
            return Some(head == *HTTP2);
        }
        // There is no way to wait for more than what is there.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn answer(request: Request<Incoming>, shared: &Shared) -> Response<Content> {
    let is_http1 = request.version() < Version::HTTP_2;
    let (form, result) = match request::admit(&request) {
        Ok(form) => (form, take(request, form, shared).await),
        Err((form, refusal)) => (form, Err(refusal)),
    };
    match result {
        Ok(added) => reply::taken(form, added),
        Err(refusal) => {
            shared.window.refused(refusal.reason());
            let reply = reply::refused(form, &refusal);
            if is_http1 { reply::closing(reply) } else { reply }
        }
    }
}

async fn take(request: Request<Incoming>, form: Form, shared: &Shared) -> Result<Added, Refusal> {
    let received = request::read(request, form, &shared.memory).await?;
    let _turn = shared.waiting.try_acquire().map_err(|_| Refusal::Busy)?;
    let window = Arc::clone(&shared.window);
    let work = tokio::task::spawn_blocking(move || decode(received, form, &window));
    work.await.unwrap_or_else(|_| Err(Refusal::Damaged("reading it failed inside perflens".to_owned())))
}

fn decode(received: Received, form: Form, window: &Window) -> Result<Added, Refusal> {
    let bytes = received.inflated()?;
    let encoding = if form == Form::Json { OtlpEncoding::Json } else { OtlpEncoding::Protobuf };
    let limits = Limits { max_bytes: MAX_BYTES as u64, max_frames: MAX_FRAMES, ..Limits::default() };
    let profiles = decode_otlp_request(&bytes, encoding, &limits, &CancelFlag::new())
        .map_err(|error| Refusal::Damaged(error.to_string()))?;
    drop(bytes);
    Ok(window.add(profiles, Instant::now()))
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Waker};

    use super::*;

    /// A sender may reset a stream of HTTP/2 at any time; what answered it is dropped then.
    #[test]
    fn a_request_that_is_given_up_keeps_no_connection_open() {
        let activity = Arc::new(Activity { start: Instant::now(), open: AtomicUsize::new(0), last: AtomicU64::new(0) });
        let own = Arc::clone(&activity);
        let mut request = Box::pin(async move {
            let _busy = own.begin();
            std::future::pending::<()>().await;
        });
        assert!(request.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(activity.open.load(Ordering::Relaxed), 1);
        assert!(!activity.is_idle());
        drop(request);
        assert_eq!(activity.open.load(Ordering::Relaxed), 0);
    }
}
