//! A web server of the tests' own on loopback: it answers as it is told, and keeps what it was sent.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use ring::hmac;

use crate::scratch::wait_for;

/// What a request had.
#[derive(Debug, Clone)]
pub(crate) struct Request {
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

/// The server; it ends when it is dropped.
pub(crate) struct Receiver {
    port: u16,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    answer: Mutex<Answer>,
    requests: Mutex<Vec<Request>>,
    is_over: AtomicBool,
}

impl Receiver {
    pub(crate) fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared =
            Arc::new(Shared { answer: answer.into(), requests: Mutex::default(), is_over: false.into() });
        let its = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming() {
                if its.is_over.load(Ordering::Relaxed) {
                    break;
                }
                held.extend(serve(stream.unwrap(), &its));
            }
        });
        Self { port, shared, thread: Some(thread) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// From here on it answers like this.
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
fn serve(mut stream: TcpStream, shared: &Shared) -> Option<TcpStream> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let path = line.split(' ').nth(1)?.to_owned();
    assert!(line.starts_with("POST "), "{line}");
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    shared.requests.lock().unwrap().push(Request { path, headers, body });
    let head = match *shared.answer.lock().unwrap() {
        Answer::Never => return Some(stream),
        Answer::Status(status) => format!("HTTP/1.1 {status} Status"),
        Answer::Redirect => "HTTP/1.1 307 Elsewhere\r\nLocation: /elsewhere".to_owned(),
    };
    let _ = write!(stream, "{head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    None
}
