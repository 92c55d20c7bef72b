//! Reading a folder that a writer may be replacing: what was read is of one dataset, or is read again.

use std::path::Path;
use std::time::{Duration, Instant};

use study::folder::Moment;

use super::Error;

/// How long a reader waits for a dataset that is being replaced. Moving files takes far less, unless the
/// writer was interrupted.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 5000 });

const PAUSE: Duration = Duration::from_millis(10);

/// What is read of a folder while nobody replaces its dataset. Where somebody does, it is read again for a
/// moment, and its failure is then that of a dataset that is being replaced.
pub fn steadily<T, E: From<Error>>(dir: &Path, read: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    within(PATIENCE, dir, read)
}

fn within<T, E: From<Error>>(
    patience: Duration,
    dir: &Path,
    mut read: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let began = Instant::now();
    loop {
        let before = Moment::of(dir);
        if !before.is_replacing() {
            let found = read();
            if before.lasts(dir) {
                return found;
            }
        }
        if began.elapsed() > patience {
            return Err(Error::replaced(dir).into());
        }
        std::thread::sleep(PAUSE);
    }
}
