//! How fast records are sealed and read back, and how much memory that takes. Run alone:
//! `cargo test --release -p analysis speed -- --ignored --nocapture`

use std::cell::Cell as Shared;
use std::time::{Duration, Instant};

use study::Record;

use super::{Sealing, seal};
use crate::dataset::{Reader, verify};
use crate::fixture::{cells, measurement, sealing};
use crate::parquet::Shape;

/// Records of all three cells; 40 row groups.
const RECORDS: u64 = 40 << 15;

/// Memory of the process in MB: now without files, and the most ever with them.
fn memory() -> (f64, f64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    };
    (value("RssAnon:"), value("VmHWM:"))
}

#[test]
#[ignore = "a measurement, to be run alone"]
fn speed() {
    let cells = cells(RECORDS / 9 + 1);
    let per_cell = cells[0].replicates * 3;
    let drawing = Shared::new(Duration::ZERO);
    let batches = cells.iter().flat_map(|cell| {
        (0..per_cell).step_by(8190).map(|first| {
            let start = Instant::now();
            let mut batch = study::Batch::new(cell.id);
            for row in first..per_cell.min(first + 8190) {
                let t = cell.checkpoints[(row % 3) as usize];
                let outcome = Ok(measurement(cell.id.0 ^ (row << 8), t));
                batch.push(&Record { cell: cell.id, replicate: row / 3, t, outcome });
            }
            drawing.set(drawing.get() + start.elapsed());
            Ok::<_, std::convert::Infallible>(batch)
        })
    });
    let out = tempfile::tempdir().unwrap();
    let sealing = Sealing { shape: Shape::default(), ..sealing(&cells, &[], out.path()) };
    let start = Instant::now();
    let manifest = seal(&sealing, batches, None).unwrap();
    let seconds = start.elapsed().saturating_sub(drawing.get()).as_secs_f64();
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let (records, megabytes) = (manifest.records as f64, bytes as f64 / 1e6);
    println!(
        "sealed {records} records, {megabytes:.0} MB, {:.0} bytes each: {:.0} records/s, {:.0} MB/s",
        bytes as f64 / records,
        records / seconds,
        megabytes / seconds
    );
    let (_, peak) = memory();
    println!("peak memory {peak:.0} MB");
    assert!(peak < 256.0, "memory is bounded by a row group");

    let start = Instant::now();
    let mut most = 0.0;
    for batch in Reader::open(out.path()).unwrap() {
        batch.unwrap();
        most = if memory().0 > most { memory().0 } else { most };
    }
    println!("read {:.0} records/s, at most {most:.0} MB", records / start.elapsed().as_secs_f64());
    assert!(most < 256.0, "memory is bounded by a row group");
    let start = Instant::now();
    verify(out.path()).unwrap();
    println!("verified {:.0} records/s", records / start.elapsed().as_secs_f64());
}
