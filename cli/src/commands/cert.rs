//! `regretta cert`: an authority, a server certificate and client certificates for a coordinator.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde::Serialize;

use crate::exit::BadInput;

/// Make certificates for a coordinator and its workers
///
/// Writes ca.pem (give it to everyone), server.pem and server.key (for the coordinator), client.pem and
/// client.key (for workers and users). The authority's key is not kept: to add a machine, make a new set.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta cert --out certs --host coordinator.example.org --host 10.0.0.5
  regretta coordinator --tls-cert certs/server.pem --tls-key certs/server.key --tls-ca certs/ca.pem ...
  regretta worker --tls-ca certs/ca.pem --tls-cert certs/client.pem --tls-key certs/client.key ...")]
pub(crate) struct Arguments {
    /// The folder to write to; nothing in it is overwritten
    #[arg(long, value_name = "DIR", default_value = "certs")]
    out: PathBuf,
    /// A name or address of the coordinator, as workers will call it; may be repeated
    #[arg(long = "host", value_name = "HOST", default_value = "localhost")]
    hosts: Vec<String>,
    /// Days that the certificates are valid
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    files: Vec<PathBuf>,
    hosts: Vec<String>,
    days: u32,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { out, hosts, days, json } = arguments;
    let written = write_set(out, hosts, *days)?;
    let report = Report { files: written, hosts: hosts.clone(), days: *days };
    if *json {
        return super::print_json(&report);
    }
    let names: Vec<String> = report.files.iter().map(|path| path.display().to_string()).collect();
    super::print(&format!("wrote {} for {}, valid {days} days", names.join(", "), hosts.join(", ")))
}

/// Writes an authority, a server's certificate and a client's into a folder that has none.
pub(crate) fn write_set(out: &Path, hosts: &[String], days: u32) -> anyhow::Result<Vec<PathBuf>> {
    let files = [
        ("ca.pem", 0o644),
        ("server.pem", 0o644),
        ("server.key", 0o600),
        ("client.pem", 0o644),
        ("client.key", 0o600),
    ];
    if let Some((name, _)) = files.iter().find(|(name, _)| out.join(name).exists()) {
        let path = out.join(name);
        return Err(BadInput(format!(
            "{} is there already; choose another --out, or remove it",
            path.display()
        ))
        .into());
    }
    std::fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let contents = make(hosts, days)?;
    let mut written = Vec::new();
    for ((name, mode), content) in files.into_iter().zip(&contents) {
        let path = out.join(name);
        write(&path, mode, content).with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path);
    }
    Ok(written)
}

fn write(path: &Path, mode: u32, content: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(content.as_bytes())
}

/// ca.pem, server.pem, server.key, client.pem, client.key.
fn make(hosts: &[String], days: u32) -> anyhow::Result<[String; 5]> {
    let mut authority = params(&[], "regretta authority", days)?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);
    let mut server = params(hosts, "regretta coordinator", days)?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let server_key = KeyPair::generate()?;
    let server_pem = server.signed_by(&server_key, &issuer)?.pem();
    let mut client = params(&[], "regretta client", days)?;
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let client_key = KeyPair::generate()?;
    let client_pem = client.signed_by(&client_key, &issuer)?.pem();
    Ok([
        authority_pem,
        server_pem,
        server_key.serialize_pem(),
        client_pem,
        client_key.serialize_pem(),
    ])
}

fn params(hosts: &[String], name: &str, days: u32) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(hosts.to_vec())
        .map_err(|error| BadInput(format!("--host {}: {error}", hosts.join(" "))))?;
    params.distinguished_name.push(DnType::CommonName, name);
    let now = std::time::SystemTime::now();
    // A little into the past, for machines whose clocks differ.
    let day = std::time::Duration::from_secs(86_400);
    params.not_before = (now - day).into();
    params.not_after = (now + day * days).into();
    Ok(params)
}
