//! Reading a folder that a writer may be replacing: what was read is of one dataset, or is read again.

use std::path::Path;
use std::time::{Duration, Instant};

use study::folder::Moment;

use super::Error;

/// How long a reader goes on trying.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Waiting in all, while a dataset is being replaced. Moving files takes far less, unless the writer was
    /// interrupted. Reading does not count, however long it takes.
    pub(crate) waiting: Duration,
    /// How often the folder is read, where every time another dataset takes its place.
    pub(crate) readings: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self { waiting: Duration::from_secs(5), readings: 10 }
    }
}

const PAUSE: Duration = Duration::from_millis(10);

/// What is read of a folder while nobody replaces its dataset. Where somebody does, it is read again, a few times,
/// and its failure is then that of a dataset that is being replaced.
pub fn steadily<T, E: From<Error>>(dir: &Path, read: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    within(Patience::default(), dir, read)
}

/// The same with other patience.
pub(crate) fn within<T, E: From<Error>>(
    patience: Patience,
    dir: &Path,
    mut read: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut waited = Duration::ZERO;
    let mut readings = 0;
    loop {
        let before = Moment::of(dir);
        if !before.is_replacing() {
            let found = read();
            if before.lasts(dir) {
                return found;
            }
            readings += 1;
        }
        if waited > patience.waiting || readings >= patience.readings {
            return Err(Error::replaced(dir).into());
        }
        let began = Instant::now();
        std::thread::sleep(PAUSE);
        waited += began.elapsed();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use study::folder::{MANIFEST, REPLACING};

    use super::*;

    const PATIENCE: Patience = Patience { waiting: Duration::from_millis(30), readings: 4 };

    /// Reads a folder as often as it takes; every reading takes longer than readers wait, and the first so many
    /// overlap with a swap.
    fn read(swaps: usize) -> (Result<usize, Error>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join(MANIFEST);
        fs::write(&manifest, "old").unwrap();
        let mut readings = 0;
        let found = within(PATIENCE, folder.path(), || {
            readings += 1;
            std::thread::sleep(2 * PATIENCE.waiting);
            if readings <= swaps {
                fs::write(&manifest, readings.to_string()).unwrap();
            }
            Ok(readings)
        });
        (found, readings)
    }

    #[test]
    fn a_long_reading_that_overlaps_a_swap_is_repeated() {
        for swaps in 0..4 {
            let (found, readings) = read(swaps);
            assert_eq!((found.unwrap(), readings), (swaps + 1, swaps + 1));
        }
    }

    #[test]
    fn a_dataset_that_is_replaced_again_and_again_is_given_up() {
        let (found, readings) = read(usize::MAX);
        assert!(matches!(found, Err(Error::Replaced { .. })));
        assert_eq!(readings, 4);
    }

    #[test]
    fn an_interrupted_swap_is_not_waited_for_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(REPLACING)).unwrap();
        fs::write(folder.path().join(REPLACING).join(MANIFEST), "new").unwrap();
        let found = within(PATIENCE, folder.path(), || -> Result<(), Error> { unreachable!() });
        assert!(matches!(found, Err(Error::Replaced { .. })));
    }
}
