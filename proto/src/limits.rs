//! How large things on the wire may be. Whatever is larger is refused before it is kept.

/// An encoded batch: `study::batch::MAX_ROWS` rows with a value in every column fit.
pub const MAX_BATCH_BYTES: usize = 4 << 20;

/// A message: a batch and what is around it.
pub const MAX_MESSAGE_BYTES: usize = MAX_BATCH_BYTES + (64 << 10);

/// A chunk of a file.
pub const MAX_CHUNK_BYTES: usize = 1 << 20;

/// A study file.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// Files that a study names.
pub const MAX_FILES: usize = 1024;

/// All files of a study together.
pub const MAX_FILE_BYTES: u64 = 1 << 30;

/// A name.
pub const MAX_NAME_BYTES: usize = 255;

/// A path.
pub const MAX_PATH_BYTES: usize = 1024;

/// A reason; a longer one is cut.
pub const MAX_REASON_BYTES: usize = 2000;

/// An encoded tally: half a million rows fit.
pub const MAX_TALLY_BYTES: usize = MAX_BATCH_BYTES;

/// Shards that a worker computes at the same time.
pub const MAX_SLOTS: u32 = 1024;

/// Leases that a worker holds: for every slot one that runs and one that waits, and those that are
/// finished but not yet acknowledged.
pub const MAX_LEASES: usize = 4096;
