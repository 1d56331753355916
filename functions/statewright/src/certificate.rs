//! Client certificates in PEM files.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore};
use statewright_shared::ports::Timestamp;
use statewright_shared::services::identity::tokens::Certificate;

/// Reads a PEM file with exactly one certificate, which may also contain the private key.
///
/// # Errors
/// If the file has no certificate or several, or if TLS cannot use it.
pub(crate) fn read(file: &Path) -> anyhow::Result<Certificate> {
    let all = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("cannot read a certificate from {}", file.display()))?;
    let [der] = all.as_slice() else {
        match all.len() {
            0 => bail!("no certificate found in {}: use a PEM file", file.display()),
            count => {
                bail!(
                    "{} contains {count} certificates: use a file with the client's own certificate only",
                    file.display()
                )
            }
        }
    };
    let not_after =
        not_after(der).with_context(|| format!("TLS cannot use the certificate in {}", file.display()))?;
    Ok(Certificate { der: der.to_vec(), not_after })
}

/// The end of the certificate's validity. The TLS library checks it first and reports it in its error for an
/// expired certificate, so the certificate is verified at the end of time, when every certificate has
/// expired.
fn not_after(der: &CertificateDer<'_>) -> anyhow::Result<Timestamp> {
    let certificate = ParsedCertificate::try_from(der)?;
    let (no_roots, end) = (RootCertStore::empty(), UnixTime::since_unix_epoch(Duration::MAX));
    match verify_server_cert_signed_by_trust_anchor(&certificate, &no_roots, &[], end, &[]) {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Ok(Timestamp::from_seconds(i64::try_from(not_after.as_secs()).unwrap_or(i64::MAX)))
        }
        Err(error) => Err(error.into()),
        Ok(()) => Err(anyhow!("it does not expire")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};

    use super::*;

    fn pem(change: impl FnOnce(&mut CertificateParams)) -> String {
        let mut params = CertificateParams::default();
        params.not_after = date_time_ymd(2031, 2, 3);
        change(&mut params);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    fn read_text(text: &str) -> anyhow::Result<Certificate> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("client.pem");
        fs::write(&file, text).unwrap();
        read(&file)
    }

    #[test]
    fn expiry_is_read_from_every_kind_of_certificate() {
        let ends =
            |change: fn(&mut CertificateParams)| read_text(&pem(change)).unwrap().not_after.to_rfc3339();
        assert_eq!(ends(|_| {}), "2031-02-03T00:00:00Z");
        let for_clients = |params: &mut CertificateParams| {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        };
        assert_eq!(ends(for_clients), "2031-02-03T00:00:00Z");
        let is_authority = |params: &mut CertificateParams| {
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        };
        assert_eq!(ends(is_authority), "2031-02-03T00:00:00Z");
        // A year beyond 2049 is encoded in another form.
        assert_eq!(ends(|params| params.not_after = date_time_ymd(2055, 1, 1)), "2055-01-01T00:00:00Z");
        let long_over = |params: &mut CertificateParams| {
            (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
        };
        assert_eq!(ends(long_over), "2002-01-01T00:00:00Z");
    }

    #[test]
    fn a_private_key_in_the_same_file_is_ignored() {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::default().self_signed(&key).unwrap();
        let read = read_text(&format!("{}{}", key.serialize_pem(), certificate.pem())).unwrap();
        assert_eq!(read.der, certificate.der().as_ref());
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        let words = |text: &str| format!("{:#}", read_text(text).unwrap_err());
        assert!(words("").contains("no certificate found in"));
        assert!(words(&KeyPair::generate().unwrap().serialize_pem()).contains("no certificate found in"));
        let two = format!("{}{}", pem(|_| {}), pem(|_| {}));
        assert!(words(&two).contains("contains 2 certificates"), "{}", words(&two));
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(words(broken).contains("TLS cannot use"), "{}", words(broken));
        let not_base64 = "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n";
        assert!(words(not_base64).contains("cannot read a certificate"), "{}", words(not_base64));
        let missing = format!("{:#}", read(Path::new("/nowhere/client.pem")).unwrap_err());
        assert!(missing.contains("/nowhere/client.pem"), "{missing}");
    }
}
