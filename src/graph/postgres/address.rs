//! Where a graph is on a server: `postgres://USER@HOST[:PORT][,HOST[:PORT]…]/DATABASE?schema=NAME`.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::text::list::some_of;

/// The scheme of an address.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
const PORT: u16 = 5432;
const SCHEMA: &str = "ralph";
/// The parameters that an address may have.
const PARAMETERS: [&str; 4] = ["schema", "sslmode", "sslrootcert", "connect_timeout"];
const CONNECT: Duration = Duration::from_secs(5);
/// The longest name of a schema, in bytes.
const LONGEST: usize = 63;

/// A database on a server, and the schema of the graph in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// As the user wrote it; it holds no password.
    text: String,
    pub(super) user: String,
    /// With their ports, in the order in which they are tried. A path is the folder of a socket.
    pub(super) hosts: Vec<(String, u16)>,
    pub(super) database: String,
    pub(super) schema: String,
    /// Whether the connection is encrypted, and the server's certificate checked; one by a socket never is.
    pub(super) is_secure: bool,
    /// A file with the authorities that are believed instead of the platform's.
    pub(super) authorities: Option<PathBuf>,
    pub(super) connect_timeout: Duration,
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it, and what to do, without anything that may be a secret.
    pub fn read(text: &str) -> Result<Self, String> {
        let form = "give it as postgres://USER@HOST/DATABASE";
        let scheme = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
        let Some(rest) = scheme else {
            let what = text.split_once("://").map_or("it has no scheme".to_owned(), |(scheme, _)| {
                format!("'{}' is no store", scheme.escape_debug())
            });
            return Err(format!("{what}: {form}"));
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A host's name has no '@', but a password may have one.
        let (user, rest) = rest.rsplit_once('@').ok_or_else(|| format!("it names no user: {form}"))?;
        if user.contains(':') || user.to_ascii_lowercase().contains("%3a") {
            return Err("it has a password, which others can read in a list of processes or in a file: leave that out, and \
                        give it with PGPASSWORD, or in the file that PGPASSFILE names, ~/.pgpass by default"
                .to_owned());
        }
        let (hosts, database) =
            rest.split_once('/').ok_or_else(|| format!("it names no database: {form}"))?;
        let user = decoded(user).filter(|user| !user.is_empty());
        let user = user.ok_or_else(|| format!("it names no user: {form}"))?;
        let database = decoded(database).filter(|name| !name.is_empty());
        let database = database.ok_or_else(|| format!("it names no database: {form}"))?;
        let hosts = hosts.split(',').map(host).collect::<Result<Vec<_>, _>>()?;
        let is_here = hosts.iter().all(|(name, _)| is_local(name));
        let mut address = Self {
            text: text.to_owned(),
            user,
            hosts,
            database,
            schema: SCHEMA.to_owned(),
            is_secure: !is_here,
            authorities: None,
            connect_timeout: CONNECT,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if query.split('&').filter(|other| other.split('=').next() == Some(name)).count() > 1 {
                return Err(format!("the parameter '{}' is there twice", name.escape_debug()));
            }
            let value = decoded(value).ok_or_else(|| format!("the value of '{name}' is no text"))?;
            address.take(name, &value)?;
        }
        // Who names an authority wants certificates of it, also of this machine.
        let says_mode = query.split('&').any(|pair| pair.starts_with("sslmode="));
        address.is_secure |= !says_mode && address.authorities.is_some();
        let has_socket = address.hosts.iter().any(|(host, _)| host.starts_with('/'));
        if has_socket && says_mode && address.is_secure {
            return Err("sslmode=verify-full: a socket has no certificate: leave that out".to_owned());
        }
        Ok(address)
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "schema" => {
                let is_plain = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
                let starts = value.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
                if !starts
                    || value.len() > LONGEST
                    || !value.chars().all(is_plain)
                    || value.starts_with("pg_")
                    || value == "information_schema"
                {
                    return Err(format!(
                        "schema={}: give a name of small letters, digits and _, at most {LONGEST}, not with pg_",
                        value.escape_debug()
                    ));
                }
                value.clone_into(&mut self.schema);
            }
            "sslmode" => {
                self.is_secure = match value {
                    "verify-full" => true,
                    "disable" => false,
                    other => {
                        return Err(format!(
                            "sslmode={}: give 'verify-full', or 'disable' for a connection that is not encrypted",
                            other.escape_debug()
                        ));
                    }
                };
            }
            "sslrootcert" => self.authorities = Some(PathBuf::from(value)),
            "connect_timeout" => {
                let seconds = value.parse().ok().filter(|seconds| (1..=60).contains(seconds));
                let seconds = seconds.ok_or("connect_timeout: give seconds from 1 to 60")?;
                self.connect_timeout = Duration::from_secs(seconds);
            }
            other => {
                let known = some_of(PARAMETERS, PARAMETERS.len());
                return Err(format!(
                    "the parameter '{}' is unknown: there are {known}",
                    other.escape_debug()
                ));
            }
        }
        Ok(())
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Into::into).filter(|text: &String| !text.contains('\0'))
}

/// `HOST`, `HOST:PORT`, `[ADDRESS]:PORT` or the folder of a socket.
fn host(text: &str) -> Result<(String, u16), String> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    };
    let port = port
        .map_or(Ok(PORT), |port| port.parse().map_err(|_| format!("'{}' is no port", port.escape_debug())))?;
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let name = decoded(name).filter(|name| !name.is_empty());
    let name = name.ok_or("it names no host: give it as postgres://USER@HOST/DATABASE")?;
    Ok((name, port))
}

/// Whether a host is this machine.
fn is_local(host: &str) -> bool {
    let is_loopback = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    host.starts_with('/') || host == "localhost" || is_loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read() {
        let address = Address::read("postgres://ann@db1:6000,db2/work?schema=night").unwrap();
        assert_eq!(address.hosts, [("db1".to_owned(), 6000), ("db2".to_owned(), PORT)]);
        assert_eq!((&*address.user, &*address.database, &*address.schema), ("ann", "work", "night"));
        assert!(address.is_secure);
        let here = Address::read("postgres://ann%40x@%2Frun%2Fpg:7000/work").unwrap();
        assert_eq!((&*here.user, here.hosts), ("ann@x", vec![("/run/pg".to_owned(), 7000)]));
        assert!(!here.is_secure);
        for (host, is_secure) in
            [("localhost", false), ("[::1]:5432", false), ("127.0.0.1", false), ("10.0.0.1", true)]
        {
            let address = Address::read(&format!("postgresql://a@{host}/d")).unwrap();
            assert_eq!(address.is_secure, is_secure, "{host}");
        }
        let other = "postgres://a@h/d?sslmode=disable&connect_timeout=9&sslrootcert=%2Fca.pem";
        let other = Address::read(other).unwrap();
        assert_eq!((other.is_secure, other.connect_timeout), (false, Duration::from_secs(9)));
        assert_eq!(other.authorities, Some(PathBuf::from("/ca.pem")));
        assert!(Address::read("postgres://a@localhost/d?sslrootcert=%2Fca.pem").unwrap().is_secure);
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for (text, said) in [
            ("mysql://a@h/d", "'mysql' is no store"),
            ("graph.db", "it has no scheme"),
            ("postgres://h/d", "it names no user"),
            ("postgres://a@h", "it names no database"),
            ("postgres://a@h/", "it names no database"),
            ("postgres://a@/d", "it names no host"),
            ("postgres://a@h:x/d", "'x' is no port"),
            ("postgres://a:s3cret@h/d", "it has a password"),
            ("postgres://a:s3@cret@h/d", "it has a password"),
            ("postgres://a%3As3cret@h/d", "it has a password"),
            ("postgres://a@h/d?schema=Night", "schema=Night"),
            ("postgres://a@h/d?schema=pg_x", "schema=pg_x"),
            ("postgres://a@h/d?sslmode=require", "give 'verify-full'"),
            ("postgres://a@h/d?password=s3cret", "the parameter 'password' is unknown"),
            ("postgres://a@h/d?connect_timeout=0", "connect_timeout"),
            ("postgres://a@h/d?schema=a&schema=b", "'schema' is there twice"),
            ("postgres://a@%00/d", "it names no host"),
        ] {
            let error = Address::read(text).unwrap_err();
            assert!(error.contains(said) && !error.contains("cret"), "{text}: {error}");
        }
    }
}
