//! The ways out of a network namespace: sockets that listen in it, and that are handed to the proxy outside.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::parts::WAY_OUT;
use super::reach::Host;
use crate::platform::{passing, socket};

/// At most this many are handed over at once: the proxy's, and one for each port of this machine.
pub const MOST: usize = passing::MOST;

/// Variables that tell a program its proxy. Some read one, some the other.
pub const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
/// Variables of places that are reached without one, and these places.
const DIRECT: [&str; 2] = ["NO_PROXY", "no_proxy"];
const OWN: &str = "localhost,127.0.0.1,::1";
/// Has Node read the variables.
const OF_NODE: (&str, &str) = ("NODE_USE_ENV_PROXY", "1");

/// Listens for what the program connects to, hands that over, and returns the variables that the program gets.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has walls"))]
pub(super) fn open(folder: &Path, hosts: &[Host]) -> io::Result<Vec<(&'static str, String)>> {
    // Those first: the proxy's is any other.
    let listen = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let mut all: Vec<TcpListener> = local_ports(hosts).into_iter().map(listen).collect::<io::Result<_>>()?;
    let proxy = listen(0)?;
    let port = proxy.local_addr()?.port();
    all.insert(0, proxy);
    let descriptors: Vec<_> = all.iter().map(|listener| listener.as_fd()).collect();
    passing::send(&socket::connect(&folder.join(WAY_OUT))?, &[0], &descriptors)?;
    let address = format!("http://127.0.0.1:{port}");
    let proxies = PROXIES.into_iter().map(|name| (name, address.clone()));
    let direct = DIRECT.into_iter().map(|name| (name, OWN.to_owned()));
    Ok(proxies.chain(direct).chain([(OF_NODE.0, OF_NODE.1.to_owned())]).collect())
}

/// Takes what was handed over: what the proxy listens on, then that for each of [`local_ports`].
pub(super) fn take(way: &UnixStream) -> io::Result<Vec<TcpListener>> {
    let (_, all) = passing::receive(way, &mut [0])?;
    Ok(all.into_iter().map(TcpListener::from).collect())
}

/// The ports of this machine's own loopback that a program reaches at the same place.
pub(super) fn local_ports(hosts: &[Host]) -> Vec<u16> {
    let mut ports: Vec<u16> = hosts.iter().filter_map(Host::on_this_machine).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}
