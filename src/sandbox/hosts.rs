//! Hosts that a program behind walls can connect to, where it can not connect to all.

use std::ffi::OsString;

use super::Grounds;
use crate::process::launch::Launch;
use crate::process::walls::{Host, MOST_WAYS, PROXIES};

/// Registries of packages, and where code is kept, by their names in the settings.
const REGISTRIES: &[(&str, &[&str])] = &[
    ("crates", &["crates.io", "index.crates.io", "static.crates.io"]),
    ("debian", &["deb.debian.org", "security.debian.org"]),
    ("github", &["github.com", "*.github.com", "*.githubusercontent.com"]),
    ("go", &["proxy.golang.org", "sum.golang.org", "storage.googleapis.com"]),
    ("hex", &["hex.pm", "repo.hex.pm", "builds.hex.pm"]),
    (
        "maven",
        &["repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org", "plugins-artifacts.gradle.org"],
    ),
    ("npm", &["registry.npmjs.org", "registry.yarnpkg.com"]),
    ("nuget", &["api.nuget.org", "www.nuget.org"]),
    ("packagist", &["packagist.org", "repo.packagist.org", "api.github.com", "codeload.github.com"]),
    ("pypi", &["pypi.org", "files.pythonhosted.org"]),
    ("rubygems", &["rubygems.org", "index.rubygems.org"]),
    ("ubuntu", &["archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com"]),
];

/// The hosts that are allowed: those of the agent's provider, and those of the settings.
///
/// # Errors
/// If one of them is none, or another proxy is in the way.
pub(super) fn of(grounds: &Grounds<'_>, env: &Launch) -> Result<Vec<Host>, String> {
    let variable = |name: &str| env.variable(name).filter(|value| !value.is_empty());
    if let Some(name) = PROXIES.into_iter().find(|name| variable(name).is_some()) {
        return Err(format!(
            "{name} names a proxy, and that of sandbox.network = \"allow\" connects by itself: unset it, or choose another network"
        ));
    }
    let provider = grounds.preset.provider;
    let mut hosts: Vec<Host> = provider.hosts.iter().filter_map(|host| Host::read(host)).collect();
    for name in provider.variables {
        hosts.extend(variable(name).and_then(of_address));
    }
    for word in &grounds.settings.hosts {
        match REGISTRIES.iter().find(|(name, _)| name == word) {
            Some((_, its)) => hosts.extend(its.iter().filter_map(|host| Host::read(host))),
            None => hosts.push(Host::read(word).ok_or_else(|| {
                let names: Vec<&str> = REGISTRIES.iter().map(|(name, _)| *name).collect();
                format!(
                    "sandbox.hosts: '{word}' is no host, *.host or host:port, and none of {}",
                    names.join(", ")
                )
            })?),
        }
    }
    hosts.sort();
    hosts.dedup();
    if hosts.iter().filter(|host| host.on_this_machine().is_some()).count() >= MOST_WAYS {
        return Err(format!("sandbox.hosts: more than {} ports of this machine", MOST_WAYS - 1));
    }
    Ok(hosts)
}

/// The host of an address such as `https://host:8080/path`.
fn of_address(address: OsString) -> Option<Host> {
    let address = address.into_string().ok()?;
    let rest = address.split_once("://").map_or(&*address, |(_, rest)| rest);
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    Host::read(place.rsplit_once('@').map_or(place, |(_, place)| place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn every_known_host_is_one() {
        let of_presets = presets::all().flat_map(|preset| preset.provider.hosts);
        let of_registries = REGISTRIES.iter().flat_map(|(_, hosts)| *hosts);
        for host in of_presets.chain(of_registries) {
            assert_eq!(Host::read(host).map(|host| host.to_string()).as_deref(), Some(*host));
        }
        // A name of one is no name of a host in most networks, and so means the registry.
        assert!(REGISTRIES.iter().all(|(name, _)| !name.contains('.')));
    }

    #[test]
    fn the_host_of_an_address_is_found() {
        for (address, host) in [
            ("https://api.example.org/v1", "api.example.org"),
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://u:p@host:1/x", "host:1"),
            ("host.example", "host.example"),
        ] {
            assert_eq!(of_address(address.into()).unwrap().to_string(), host);
        }
        assert_eq!(of_address("https:///x".into()), None);
    }
}
