//! Requests to web servers of others: one way to set up connections.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

/// A client with the system's certificates and the proxies of the environment, and this limit for a whole request. It
/// follows no redirect: what is signed, or has a token, is for the receiver that was named.
pub(crate) fn client(limit: Duration) -> Agent {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(provider)
        .build();
    let config = Agent::config_builder()
        .timeout_global(Some(limit))
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent(concat!("ralph/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls)
        .build();
    config.into()
}
