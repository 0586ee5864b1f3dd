//! Where a program behind walls can connect to, as data.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// Ports of a host that is named without one.
const USUAL: [u16; 2] = [80, 443];

/// Where a program can connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Everywhere.
    #[default]
    All,
    /// To its own loopback only.
    None,
    /// To its own loopback, and by a proxy of ours to these.
    Hosts(Vec<Host>),
}

/// A host, or all below a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Host {
    /// Its name in small letters, or its address.
    name: String,
    /// Whether all below that name are meant, and not the name itself.
    is_above: bool,
    /// `None`: the usual ones of the web.
    port: Option<u16>,
}

impl Host {
    /// Reads `host`, `*.host`, `host:port`; an address of version 6 with a port is in brackets. `None`: it is none of these.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (is_above, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        let (name, port) = match split(rest) {
            Some((name, port)) => (name, Some(port).filter(|port| *port > 0).map(Some)?),
            None => (rest, None),
        };
        let name = plain(name);
        let is_address = name.parse::<IpAddr>().is_ok();
        let is_name = !name.is_empty()
            && name.split('.').all(|part| {
                !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
            });
        (is_name || is_address && !is_above).then_some(Self { name, is_above, port })
    }

    /// Its name, and its port here if it is one on this machine that a program reaches at the same place.
    #[must_use]
    pub fn on_this_machine(&self) -> Option<u16> {
        self.port.filter(|_| !self.is_above && ["127.0.0.1", "localhost"].contains(&&*self.name))
    }

    /// Whether it is this one; and if so, whether that was said by its own name.
    fn is(&self, name: &str, port: u16) -> Option<bool> {
        let is_port = self.port.map_or(USUAL.contains(&port), |own| own == port);
        let below = name.strip_suffix(&*self.name).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1);
        match self.is_above {
            _ if !is_port => None,
            true => below.then_some(false),
            false => (name == self.name).then_some(true),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (above, name) = (if self.is_above { "*." } else { "" }, &self.name);
        match self.port {
            Some(port) if name.contains(':') => write!(f, "{above}[{name}]:{port}"),
            Some(port) => write!(f, "{above}{name}:{port}"),
            None => write!(f, "{above}{name}"),
        }
    }
}

/// `name:port`, where a port stands.
pub(super) fn split(text: &str) -> Option<(&str, u16)> {
    let (name, port) = text.rsplit_once(':')?;
    // Part of an address of version 6.
    let is_whole = !name.contains(':') || name.starts_with('[') && name.ends_with(']');
    is_whole.then_some(())?;
    // The parser of numbers takes a sign.
    Some((name, port.parse().ok().filter(|_| !port.starts_with('+'))?))
}

/// A name as it is compared.
pub(super) fn plain(name: &str) -> String {
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    // One address may be written in several ways.
    name.parse::<IpAddr>().map_or(name, |address| address.to_string())
}

/// Whether these hosts are allowed to be connected to by this name; if so, whether at private addresses, too.
pub(super) fn allowed(hosts: &[Host], name: &str, port: u16) -> Option<bool> {
    let name = plain(name);
    hosts.iter().filter_map(|host| host.is(&name, port)).max()
}

/// Whether an address is of this machine or network, and not of the internet.
pub(super) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(address) => is_private_v4(address),
            None => {
                address.is_loopback()
                    || address.is_unspecified()
                    || address.is_multicast()
                    || address.is_unique_local()
                    || address.is_unicast_link_local()
                    // Of a site, as it was called before.
                    || address.segments()[0] & 0xffc0 == 0xfec0
            }
        },
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_multicast()
        || first == 0
        || first >= 240
        // Networks behind a provider's translation, and for trials.
        || first == 100 && (64..128).contains(&second)
        || first == 198 && (second & 0xfe) == 18
        || first == 192 && second == 0 && matches!(address.octets()[2], 0 | 2)
}

/// The address of version 4 that one of version 6 stands for.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [first, second, third, .., high, low] = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match (first, second) {
        // Translated, tunnelled, and written in the old way.
        (0x64, 0xff9b) => Some(of(high, low)),
        (0x2002, _) => Some(of(second, third)),
        (0, 0) if address.segments()[..6] == [0; 6] && high != 0 => Some(of(high, low)),
        _ => address.to_ipv4_mapped(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_and_found() {
        let hosts: Vec<Host> =
            ["example.org", "*.crates.io", "host:8080", "[::1]:11434", "10.0.0.7", "LOUD.example."]
                .iter()
                .map(|text| Host::read(text).unwrap())
                .collect();
        for (name, port, found) in [
            ("example.org", 443, Some(true)),
            ("Example.ORG.", 80, Some(true)),
            ("example.org", 22, None),
            ("www.example.org", 443, None),
            ("evilexample.org", 443, None),
            ("static.crates.io", 443, Some(false)),
            ("a.b.crates.io", 443, Some(false)),
            ("crates.io", 443, None),
            (".crates.io", 443, None),
            ("evilcrates.io", 443, None),
            ("host", 8080, Some(true)),
            ("host", 443, None),
            ("[::1]", 11434, Some(true)),
            ("0:0:0:0:0:0:0:1", 11434, Some(true)),
            ("10.0.0.7", 80, Some(true)),
            ("loud.example", 443, Some(true)),
        ] {
            assert_eq!(allowed(&hosts, name, port), found, "{name}:{port}");
        }
        for bad in [
            "",
            "*.",
            "a b",
            "http://x",
            "a/b",
            "host:0",
            "host:99999",
            "host:+80",
            "*.1.2.3.4:x",
            "-",
            "a..b",
        ] {
            assert!(Host::read(bad).is_none() || bad == "-", "{bad}");
        }
        assert_eq!(Host::read("[::1]:11434").unwrap().on_this_machine(), None, "it is reached by the proxy");
        assert_eq!(Host::read("localhost:80").unwrap().on_this_machine(), Some(80));
        assert_eq!(Host::read("localhost").unwrap().on_this_machine(), None);
        assert_eq!(Host::read("example.org:80").unwrap().on_this_machine(), None);
    }

    #[test]
    fn addresses_of_this_network_are_known_however_they_are_written() {
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "255.255.255.255",
            "224.0.0.1",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "fec0::1",
            "::10.0.0.1",
        ] {
            assert!(is_private(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert!(!is_private(public.parse().unwrap()), "{public}");
        }
    }
}
