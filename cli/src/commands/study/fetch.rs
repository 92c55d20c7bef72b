//! Downloads a dataset.

use std::io::Write;
use std::path::Path;

use analysis::seal::{Lock, Staging};
use anyhow::bail;
use proto::convert::{ResultPart, study_bytes};
use proto::v1;

use super::Common;
use super::client::{broken, find, refused};
use crate::commands::print;
use crate::exit::{BadInput, CheckFailed};
use crate::place::manifest;

/// Downloads into a folder beside the dataset that is there, so that neither a broken download nor half of one is
/// ever taken for a dataset.
pub(super) async fn fetch(
    wanted: &str,
    out: &Path,
    replace: bool,
    common: &Common,
) -> anyhow::Result<()> {
    let held = out.join("manifest.json").exists();
    if held && !replace {
        let advice = "choose another --out, or give --replace if it is of the same study";
        bail!(BadInput(format!("{} holds a dataset already; {advice}", out.display())));
    }
    let mut client = common.client().await?;
    let id = find(&mut client, wanted).await?;
    if held && manifest(out)?.study_digest != id.hex() {
        let refused = "holds a dataset of another study; choose another --out";
        bail!(BadInput(format!("{} {refused}", out.display())));
    }
    let request = v1::FetchResultsRequest { study: study_bytes(id) };
    let mut chunks = client.fetch_results(request).await.map_err(refused)?.into_inner();
    let staging = Staging::create(&Lock::take(out)?)?;
    let mut open: Option<std::fs::File> = None;
    let mut files = 0;
    while let Some(chunk) = chunks.message().await.map_err(broken)? {
        let ResultPart { name, data, last } = ResultPart::try_from(chunk)?;
        let mut file = match open.take() {
            Some(file) => file,
            None => std::fs::File::create_new(staging.path(&name))?,
        };
        file.write_all(&data)?;
        if last {
            file.sync_all()?;
            files += 1;
        } else {
            open = Some(file);
        }
    }
    let manifest = analysis::dataset::verify(&staging.path(""))?;
    if manifest.study_digest != id.hex() {
        let sent = "the coordinator sent the dataset of another study";
        bail!(CheckFailed(format!("{sent}, {} ({})", manifest.name, manifest.study)));
    }
    staging.publish()?;
    print(&format!("{files} files in {}\ndigest {}", out.display(), manifest.digest))
}
