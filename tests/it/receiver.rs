//! A web server for tests on loopback: it answers as configured, and keeps its requests.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use ring::hmac;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::scratch::wait_for;

/// What a request had.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub method: String,
    pub path: String,
    /// By their names in small letters.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Request {
    /// Whether it is signed with this secret.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let (Some(time), Some(signature)) =
            (self.headers.get("x-ralph-timestamp"), self.headers.get("x-ralph-signature"))
        else {
            return false;
        };
        let Some(digits) = signature.strip_prefix("sha256=") else { return false };
        let bytes: Vec<u8> = (0..digits.len() / 2)
            .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        hmac::verify(&key, format!("{time}.{}", self.body).as_bytes(), &bytes).is_ok()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// How a request is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// With this status.
    Status(u16),
    /// With one that names another place.
    Redirect,
    /// Never, while the connection stays open.
    Never,
}

/// A connection.
trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

/// Makes the answer to a request: all that is written, with its head.
type Make = dyn Fn(&Request) -> String + Send + Sync;

/// An answer with this status, these lines of its head and this body.
pub(crate) fn answered(status: u16, head: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} Status\r\n{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// How a connection is opened.
type Open = dyn Fn(TcpStream) -> Box<dyn Stream> + Send;

/// The server; it ends when it is dropped.
pub(crate) struct Receiver {
    scheme: &'static str,
    port: u16,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    answer: Mutex<Answer>,
    /// It is asked first, if it is there.
    make: Option<Box<Make>>,
    requests: Mutex<Vec<Request>>,
    is_over: AtomicBool,
}

impl Receiver {
    pub(crate) fn start(answer: Answer) -> Self {
        Self::open("http", answer, None, Box::new(|stream| Box::new(stream)))
    }

    /// One that answers each request with what is made for it.
    pub(crate) fn making(make: impl Fn(&Request) -> String + Send + Sync + 'static) -> Self {
        Self::open("http", Answer::Never, Some(Box::new(make)), Box::new(|stream| Box::new(stream)))
    }

    /// One that speaks TLS, and the certificate, as PEM, of the authority that vouches for it.
    pub(crate) fn secure(answer: Answer) -> (Self, String) {
        let mut authority = CertificateParams::new([]).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = authority.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(authority, key);
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();

        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let key = key.serialize_der().try_into().unwrap();
        let config = Arc::new(config.with_single_cert(vec![own.der().clone()], key).unwrap());
        let open = move |stream| -> Box<dyn Stream> {
            Box::new(StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream))
        };
        (Self::open("https", answer, None, Box::new(open)), certificate)
    }

    fn open(scheme: &'static str, answer: Answer, make: Option<Box<Make>>, open: Box<Open>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            answer: answer.into(),
            make,
            requests: Mutex::default(),
            is_over: false.into(),
        });
        let its = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming() {
                if its.is_over.load(Ordering::Relaxed) {
                    break;
                }
                held.extend(serve(open(stream.unwrap()), &its));
            }
        });
        Self { scheme, port, shared, thread: Some(thread) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://127.0.0.1:{}{path}", self.scheme, self.port)
    }

    /// Changes the answer from now on.
    pub(crate) fn answers(&self, answer: Answer) {
        *self.shared.answer.lock().unwrap() = answer;
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits until it was sent so many.
    #[track_caller]
    pub(crate) fn await_requests(&self, count: usize) -> Vec<Request> {
        wait_for("requests", || Some(self.requests()).filter(|requests| requests.len() >= count))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Reads one request and answers it; a connection that is to stay open is handed back.
fn serve(mut stream: Box<dyn Stream>, shared: &Shared) -> Option<Box<dyn Stream>> {
    let mut reader = BufReader::new(&mut stream);
    let mut line = String::new();
    // A client that does not trust the server's certificate closes the connection.
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    assert!(method == "POST" || shared.make.is_some(), "{line}");
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers.get("content-length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let request = Request { method, path, headers, body };
    shared.requests.lock().unwrap().push(request.clone());
    if let Some(make) = &shared.make {
        let _ = write!(stream, "{}", make(&request));
        return None;
    }
    let head = match *shared.answer.lock().unwrap() {
        Answer::Never => return Some(stream),
        Answer::Status(status) => format!("HTTP/1.1 {status} Status"),
        Answer::Redirect => "HTTP/1.1 307 Elsewhere\r\nLocation: /elsewhere".to_owned(),
    };
    let _ = write!(stream, "{head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    None
}
