//! Certificates made to order, and TLS before servers that speak plainly.
//!
//! A [`Front`] takes TLS off and passes on what is in it, byte by byte, to a server behind. It
//! offers the protocols that server speaks.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

/// Who vouches for names.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
#[derive(Debug)]
pub struct Certificate {
    der: CertificateDer<'static>,
    pem: String,
    key: KeyPair,
}

/// When a certificate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// From yesterday to tomorrow.
    Now,
    /// Until the first day of 2021.
    Before,
    /// From the first day of 2100 on.
    Later,
}

impl Authority {
    /// A new one.
    pub fn new(name: &str) -> Self {
        let mut params = params(&[], name, Holds::Now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().expect("making a key")).expect("signing"))
    }

    /// Vouches for names or addresses.
    pub fn issue(&self, names: &[&str], holds: Holds) -> Certificate {
        let key = KeyPair::generate().expect("making a key");
        let signed = params(names, "test", holds).signed_by(&key, &self.0).expect("signing");
        Certificate { der: signed.der().clone(), pem: signed.pem(), key }
    }

    /// Writes its own certificate into a folder.
    pub fn write_to(&self, folder: &Path) -> PathBuf {
        write(folder, "ca.pem", &self.0.pem())
    }
}

impl Certificate {
    /// Writes the certificate and its key into a folder.
    pub fn write_to(&self, folder: &Path) -> [PathBuf; 2] {
        [write(folder, "own.pem", &self.pem), write(folder, "own.key", &self.key.serialize_pem())]
    }
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("writing a file");
    path
}

fn params(names: &[&str], own: &str, holds: Holds) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("they are names");
    params.distinguished_name.push(DnType::CommonName, own);
    let day = Duration::from_hours(24);
    let (from, to) = match holds {
        Holds::Now => ((SystemTime::now() - day).into(), (SystemTime::now() + day).into()),
        Holds::Before => (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1)),
        Holds::Later => (rcgen::date_time_ymd(2100, 1, 1), rcgen::date_time_ymd(2101, 1, 1)),
    };
    (params.not_before, params.not_after) = (from, to);
    params
}

/// TLS before a server; ends with the value.
#[derive(Debug)]
pub struct Front {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Front {
    /// Listens, shows a certificate, and passes on to `behind` what comes. With an authority it
    /// takes only those who show a certificate of it.
    pub fn start(behind: &str, shows: &Certificate, wants: Option<&Authority>, protocols: &[&str]) -> Self {
        let config = config(shows, wants, protocols);
        let listener = TcpListener::bind("127.0.0.1:0").expect("listening on the loopback");
        listener.set_nonblocking(true).expect("it is a socket");
        let address = listener.local_addr().expect("it has an address");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("starting a runtime");
        let behind = behind.to_owned();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it is a socket");
            let acceptor = TlsAcceptor::from(Arc::new(config));
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass_on(acceptor.clone(), stream, behind.clone()));
            }
        });
        Self { address, runtime: Some(runtime) }
    }

    /// `127.0.0.1:12345`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn config(shows: &Certificate, wants: Option<&Authority>, protocols: &[&str]) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("it has the usual versions");
    let builder = match wants {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.0.der().clone()).expect("it is an authority");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("it has an authority"))
        }
    };
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(shows.key.serialize_der()));
    let mut config = builder.with_single_cert(vec![shows.der.clone()], key).expect("the key is the certificate's");
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

async fn pass_on(acceptor: TlsAcceptor, stream: TcpStream, behind: String) {
    match acceptor.accept(stream).into_fallible().await {
        Ok(mut inside) => {
            if let Ok(mut server) = TcpStream::connect(behind).await {
                // Either side may leave.
                let _ = copy_bidirectional(&mut inside, &mut server).await;
            }
        }
        Err((_, mut stream)) => {
            // What was refused is read to its end: closing before that resets the connection, and the
            // other side may not see why.
            let mut rest = [0; 4096];
            let _ = tokio::time::timeout(Duration::from_secs(5), async {
                while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
            })
            .await;
        }
    }
}
