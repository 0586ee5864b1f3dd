//! What a program asks a proxy for.

use super::reach::split;

/// A request: where it goes to, and what is sent there first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) host: String,
    pub(super) port: u16,
    /// The head for the host; `None`: a tunnel is wanted, through which the program says everything itself.
    pub(super) head: Option<Vec<u8>>,
}

/// Headers that are for the proxy, or say what becomes of the connection to it; and the host, which is the one of the request.
const OURS: [&str; 6] = ["connection", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te"];

impl Request {
    /// Reads a head with the empty line at its end; `None`: it is none.
    pub(super) fn read(head: &[u8]) -> Option<Self> {
        let head = str::from_utf8(head).ok()?;
        let (line, headers) = head.split_once("\r\n")?;
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = split(target)?;
            return Some(Self { host: host.to_owned(), port, head: None });
        }
        let rest = target.strip_prefix("http://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(end);
        // A user and a password before it are not sent on by any program of today.
        if place.is_empty() || place.contains('@') {
            return None;
        }
        let (host, port) = split(place).unwrap_or((place, 80));
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut sent = format!("{method} {slash}{path} {version}\r\nHost: {place}\r\n");
        for header in headers.split("\r\n").filter(|header| !header.is_empty()) {
            let name = header.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
            if !OURS.contains(&&*name) {
                sent.push_str(header);
                sent.push_str("\r\n");
            }
        }
        // The next request may be for another host.
        sent.push_str("Connection: close\r\n\r\n");
        Some(Self { host: host.to_owned(), port, head: Some(sent.into_bytes()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_and_plain_requests_are_read() {
        let tunnel = Request::read(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n").unwrap();
        assert_eq!((&*tunnel.host, tunnel.port, tunnel.head), ("example.org", 443, None));
        let tunnel = Request::read(b"CONNECT [2606:4700::1]:443 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!((&*tunnel.host, tunnel.port), ("[2606:4700::1]", 443));
        let plain = Request::read(
            b"GET http://h:8080/a?b HTTP/1.1\r\nHost: other\r\nProxy-Connection: keep-alive\r\nConnection: x\r\nA: b\r\n\r\n",
        )
        .unwrap();
        assert_eq!((&*plain.host, plain.port), ("h", 8080));
        let head = String::from_utf8(plain.head.unwrap()).unwrap();
        assert_eq!(head, "GET /a?b HTTP/1.1\r\nHost: h:8080\r\nA: b\r\nConnection: close\r\n\r\n");
        let top = Request::read(b"GET http://h HTTP/1.0\r\n\r\n").unwrap();
        assert!(top.port == 80 && top.head.unwrap().starts_with(b"GET / HTTP/1.0\r\nHost: h\r\n"));
        for bad in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"GET https://h/ HTTP/1.1\r\n\r\n",
            b"CONNECT h HTTP/1.1\r\n\r\n",
            b"CONNECT h:99999 HTTP/1.1\r\n\r\n",
            b"GET http://u@h/ HTTP/1.1\r\n\r\n",
            b"GET http:///x HTTP/1.1\r\n\r\n",
            b"\x16\x03\x01\r\n\r\n",
            b"GET http://h/ x HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(Request::read(bad), None);
        }
    }
}
