//! Encrypted connections: the server's certificate is always checked.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::files::theirs;

/// Connects with the authorities of a file, or else with the platform's.
///
/// # Errors
/// If they cannot be read.
pub(super) fn connector(authorities: Option<&Path>) -> Result<MakeRustlsConnect, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match authorities {
        None => builder.with_platform_verifier().map_err(|error| error.to_string())?,
        Some(path) => builder.with_root_certificates(read(path)?),
    };
    Ok(MakeRustlsConnect::new(builder.with_no_client_auth()))
}

fn read(path: &Path) -> Result<RootCertStore, String> {
    let about = |error: &dyn std::fmt::Display| format!("sslrootcert {}: {error}", path.display());
    let text = theirs::read(path, theirs::MAX_TEXT).map_err(|error| about(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| about(&error))?;
        roots.add(certificate).map_err(|error| about(&error))?;
    }
    if roots.is_empty() { Err(about(&"it has no certificate")) } else { Ok(roots) }
}
