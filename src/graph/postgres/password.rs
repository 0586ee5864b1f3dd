//! The password for a server: from the environment, or from the file that `PostgreSQL`'s own programs read.

use std::env;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::address::Address;
use crate::files::theirs;

/// The variables with a password, or with the file that has it.
pub const PASSWORDS: [&str; 2] = ["PGPASSWORD", "PGPASSFILE"];
/// The largest file of passwords, in bytes.
const LARGEST: u64 = 1 << 20;

/// The password of the address for this host; `None`: there is none, as with a socket.
///
/// # Errors
/// If others can read the file, or it cannot be read.
pub(super) fn find(address: &Address, host: &str, port: u16) -> Result<Option<String>, String> {
    if let Some(password) = env::var(PASSWORDS[0]).ok().filter(|password| !password.is_empty()) {
        return Ok(Some(password));
    }
    let named = env::var_os(PASSWORDS[1]).filter(|path| !path.is_empty()).map(PathBuf::from);
    let usual = env::var_os("HOME").map(|home| Path::new(&home).join(".pgpass"));
    let is_named = named.is_some();
    let Some(path) = named.or(usual).filter(|path| is_named || path.exists()) else { return Ok(None) };
    let shown = path.display();
    let found = path.metadata().map_err(|error| format!("PGPASSFILE: {shown}: {error}"))?;
    if !found.is_file() {
        return Err(format!("{shown}: this is no file with passwords"));
    }
    if found.permissions().mode() & 0o077 != 0 {
        return Err(format!("{shown}: others can read it, so that it is not used: 'chmod 600 {shown}'"));
    }
    let text = theirs::read(&path, LARGEST).map_err(|error| format!("{shown}: {error}"))?;
    let text = String::from_utf8_lossy(&text);
    // The folder of a socket is written as its path, or as the host of this machine.
    let is_host = |field: &str| field == host || (host.starts_with('/') && field == "localhost");
    Ok(text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [of_host, of_port, of_database, of_user, password] = fields.as_slice() else { return None };
        let is = |field: &str, value: &str| field == "*" || field == value;
        let is_ours = (of_host == "*" || is_host(of_host))
            && is(of_port, &port.to_string())
            && is(of_database, &address.database)
            && is(of_user, &address.user);
        is_ours.then(|| password.clone())
    }))
}

/// The fields of a line, which are separated by colons; a backslash takes the meaning of the next character away.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ':' => fields.push(String::new()),
            '\\' => fields.last_mut().expect("there is one").extend(chars.next()),
            c => fields.last_mut().expect("there is one").push(c),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_may_have_colons() {
        assert_eq!(fields(r"db:5432:*:ann:a\:b\\c"), ["db", "5432", "*", "ann", r"a:b\c"]);
    }
}
