//! A proxy for one program behind walls: it connects to the hosts that are allowed, and to nothing else. What goes through it is not
//! read.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::overheard::MOST_REFUSED;
use super::parts::WAY_OUT;
use super::reach::{Host, allowed, is_private, plain};
use super::request::Request;
use super::way_out::{local_ports, take};
use crate::platform::socket;
use crate::threads;

/// How long a program may take to say where it wants to connect to.
const ASKS: Duration = Duration::from_secs(30);
/// How long a connection may take.
const CONNECTS: Duration = Duration::from_secs(10);
/// At most so many connections at once, and how long one more waits before it is looked again.
const MOST: usize = 128;
const SHORT: Duration = Duration::from_millis(20);
/// The longest name of a host.
const LONGEST: usize = 255;
/// The longest head of a request, in bytes.
const HEAD: usize = 64 << 10;
/// How much is passed on at once, in bytes.
const PIECE: usize = 128 << 10;

/// The proxy of one program. Dropped, it ends all connections.
#[derive(Debug)]
pub(super) struct Proxy {
    shared: Arc<Shared>,
    way: PathBuf,
}

#[derive(Debug)]
struct Shared {
    hosts: Vec<Host>,
    is_over: AtomicBool,
    /// How many connections there are, also those that have not said anything yet.
    active: AtomicUsize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// What was refused, and how often.
    refused: BTreeMap<String, u64>,
    /// What is listened on.
    listeners: Vec<Arc<TcpListener>>,
    /// Both ends of each connection, by its number.
    open: BTreeMap<u64, [TcpStream; 2]>,
    count: u64,
}

/// Why a program is not connected: the status for it, and the reason.
type Refusal = (&'static str, String);

impl Proxy {
    /// Waits in this folder for what the program listens on.
    ///
    /// # Errors
    /// If there is no room for a socket or a thread.
    pub(super) fn start(folder: &Path, hosts: &[Host]) -> io::Result<Self> {
        let way = folder.join(WAY_OUT);
        let entrance = socket::listen(&way)?;
        let shared = Arc::new(Shared {
            hosts: hosts.to_vec(),
            is_over: AtomicBool::default(),
            active: AtomicUsize::default(),
            known: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        threads::start(move || {
            let handed = entrance.accept().and_then(|(way, _)| take(&way));
            own.serve(handed.unwrap_or_default());
        })?;
        Ok(Self { shared, way })
    }

    /// The hosts that were refused, and how often.
    pub(super) fn refused(&self) -> BTreeMap<String, u64> {
        self.shared.lock().refused.clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // The program may never have come.
        let _ = socket::connect(&self.way);
        let known = self.shared.lock();
        for listener in &known.listeners {
            let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
        }
        for end in known.open.values().flatten() {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    /// Answers what comes, until all is over.
    fn serve(self: Arc<Self>, listeners: Vec<TcpListener>) {
        let ports = [None].into_iter().chain(local_ports(&self.hosts).into_iter().map(Some));
        let listeners: Vec<_> = listeners.into_iter().map(Arc::new).collect();
        self.lock().listeners.clone_from(&listeners);
        for (listener, port) in listeners.into_iter().zip(ports) {
            let own = Arc::clone(&self);
            // Without a thread nothing is answered there, and the program is told so.
            let _ = threads::start(move || own.accept(&listener, port));
        }
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener, port: Option<u16>) {
        while !self.is_over.load(Ordering::Relaxed) {
            match listener.accept() {
                // Each takes four descriptors of ours: more wait until others are over.
                Ok((client, _)) => {
                    while self.active.load(Ordering::Relaxed) >= MOST && !self.is_over.load(Ordering::Relaxed)
                    {
                        thread::sleep(SHORT);
                    }
                    self.active.fetch_add(1, Ordering::Relaxed);
                    let own = Arc::clone(self);
                    let answer = move || {
                        own.answer(client, port);
                        own.active.fetch_sub(1, Ordering::Relaxed);
                    };
                    if threads::start(answer).is_err() {
                        self.active.fetch_sub(1, Ordering::Relaxed);
                    }
                }
                // The program has gone away before it was answered.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) if self.is_over.load(Ordering::Relaxed) => break,
                // There is no descriptor or memory left for a moment.
                Err(_) => thread::sleep(SHORT),
            }
        }
    }

    /// Connects a program to what it wants. `port`: to that one of this machine.
    fn answer(&self, mut client: TcpStream, port: Option<u16>) {
        let _ = client.set_nodelay(true);
        let begun = match port {
            Some(port) => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map(|host| (host, Vec::new())).ok(),
            None => self.ask(&mut client),
        };
        let Some((host, rest)) = begun else { return };
        let _ = host.set_nodelay(true);
        let (Ok(client_too), Ok(host_too)) = (client.try_clone(), host.try_clone()) else { return };
        let number = {
            let mut known = self.lock();
            known.count += 1;
            let number = known.count;
            known.open.insert(number, [client_too, host_too]);
            number
        };
        if !self.is_over.load(Ordering::Relaxed) {
            pass(&client, &host, &rest);
        }
        self.lock().open.remove(&number);
    }

    /// Hears where a program wants to connect to, and connects; returns the host, with what else the program has said already.
    fn ask(&self, client: &mut TcpStream) -> Option<(TcpStream, Vec<u8>)> {
        let (head, rest) = read_head(client).ok()??;
        let connected = match Request::read(&head) {
            Some(request) => self.connect(&request).map(|host| (request, host)),
            None => Err(("400 Bad Request", "this is no request to a proxy".to_owned())),
        };
        client.set_read_timeout(None).ok()?;
        match connected {
            Ok((Request { head: None, .. }, host)) => {
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
                Some((host, rest))
            }
            Ok((Request { head: Some(head), .. }, host)) => Some((host, [head, rest].concat())),
            Err((status, why)) => {
                let why = format!("ralph: {why}\n");
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{why}",
                    why.len()
                );
                client.write_all(head.as_bytes()).ok()?;
                None
            }
        }
    }

    fn connect(&self, request: &Request) -> Result<TcpStream, Refusal> {
        let Request { host, port, .. } = request;
        let place = format!("{host}:{port}");
        // What is told stands in prompts and on terminals.
        if host.len() > LONGEST || Host::read(plain(host).as_str()).is_none() {
            return Err(("400 Bad Request", "this is no name of a host".to_owned()));
        }
        let Some(is_named) = allowed(&self.hosts, host, *port) else {
            return Err(self.refuse(&place, "is not among the hosts of sandbox.hosts"));
        };
        let away = |why: String| ("502 Bad Gateway", format!("{place}: {why}"));
        let found = (&*plain(host), *port).to_socket_addrs().map_err(|error| away(error.to_string()))?;
        let (private, public): (Vec<SocketAddr>, Vec<SocketAddr>) =
            found.partition(|found| is_private(found.ip()));
        let may = if is_named { [public, private].concat() } else { public };
        if may.is_empty() {
            return Err(self
                .refuse(&place, "has an address of this network, and is not named in sandbox.hosts itself"));
        }
        let mut last = String::new();
        for address in may {
            match TcpStream::connect_timeout(&address, CONNECTS) {
                Ok(host) if !is_named && is_own(&host) => {
                    return Err(
                        self.refuse(&place, "is this machine, and is not named in sandbox.hosts itself")
                    );
                }
                Ok(host) => return Ok(host),
                Err(error) => last = error.to_string(),
            }
        }
        Err(away(last))
    }

    /// Notes that a place is refused.
    fn refuse(&self, place: &str, why: &str) -> Refusal {
        let refused = &mut self.lock().refused;
        if refused.len() < MOST_REFUSED || refused.contains_key(place) {
            *refused.entry(place.to_owned()).or_default() += 1;
        }
        ("403 Forbidden", format!("{place} {why}"))
    }

    /// A panic of another thread cannot leave it half-changed.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a connection leads to this machine, by whichever of its addresses.
fn is_own(host: &TcpStream) -> bool {
    matches!((host.local_addr(), host.peer_addr()), (Ok(own), Ok(peer)) if own.ip() == peer.ip())
}

/// The head of a request, and what comes behind it; `None`: the program has said nothing whole.
fn read_head(client: &mut TcpStream) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    let end = Instant::now() + ASKS;
    loop {
        // However small the pieces are.
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        client.set_read_timeout(Some(left))?;
        let length = client.read(&mut piece)?;
        // The end may lie across two pieces.
        let from = head.len().saturating_sub(3);
        head.extend_from_slice(&piece[..length]);
        let found = head[from..].windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(found) = found {
            let rest = head.split_off(from + found + 4);
            return Ok(Some((head, rest)));
        }
        if length == 0 || head.len() > HEAD || Instant::now() >= end {
            return Ok(None);
        }
    }
}

/// Passes on what both say, until both have said all.
fn pass(client: &TcpStream, host: &TcpStream, first: &[u8]) {
    thread::scope(|scope| {
        let back = threads::start_in(scope, || copy(host, client));
        if back.is_ok() && (&*host).write_all(first).is_ok() {
            copy(client, host);
        } else {
            let _ = host.shutdown(Shutdown::Both);
        }
    });
}

/// Copies until one side ends, and says so to the other.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(length) if to.write_all(&piece[..length]).is_ok() => {}
            Ok(_) => {
                let _ = from.shutdown(Shutdown::Read);
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                // Cut off, and not ended.
                let _ = to.shutdown(Shutdown::Both);
                break;
            }
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
