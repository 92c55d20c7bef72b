//! Two ordered sequences of records as one.

use std::cmp::Ordering;
use std::iter::Fuse;

use study::{Batch, CellId};

use super::Source;
use crate::census::Disorder;

type Key = (CellId, u64, u32);

/// The records of both, in the order of (cell, replicate, t), where each is in this order. A record
/// that both have is an error, after which nothing comes.
pub fn merge<A, B, E, F>(base: A, new: B) -> impl Iterator<Item = Result<Batch, Source>>
where
    A: IntoIterator<Item = Result<Batch, E>>,
    B: IntoIterator<Item = Result<Batch, F>>,
    E: Into<Source>,
    F: Into<Source>,
{
    Merge {
        base: Side::new(base.into_iter().map(|batch| batch.map_err(Into::into))),
        new: Side::new(new.into_iter().map(|batch| batch.map_err(Into::into))),
        ended: false,
    }
}

struct Merge<A, B> {
    base: Side<A>,
    new: Side<B>,
    ended: bool,
}

/// A sequence and the batch at its head, of which rows from `next` on are still to come.
struct Side<I> {
    batches: Fuse<I>,
    head: Option<Batch>,
    next: usize,
}

impl<I: Iterator<Item = Result<Batch, Source>>> Side<I> {
    fn new(batches: I) -> Self {
        Self { batches: batches.fuse(), head: None, next: 0 }
    }

    /// The key of the first record still to come.
    fn key(&mut self) -> Result<Option<Key>, Source> {
        loop {
            match &self.head {
                Some(head) if self.next < head.len() => return Ok(Some(key(head, self.next))),
                _ => {}
            }
            // A batch that is spent must not be taken again, as empty, when no other follows.
            self.head = None;
            let Some(head) = self.batches.next().transpose()? else { return Ok(None) };
            (self.head, self.next) = (Some(head), 0);
        }
    }

    /// The records of the head that come before a key, or all of them.
    fn take(&mut self, before: Option<Key>) -> Option<Batch> {
        let head = self.head.take()?;
        let end = before.map_or(head.len(), |before| {
            let mut rows = self.next..head.len();
            while !rows.is_empty() {
                let middle = rows.start.midpoint(rows.end);
                if key(&head, middle) < before {
                    rows.start = middle + 1;
                } else {
                    rows.end = middle;
                }
            }
            rows.start
        });
        if (self.next, end) == (0, head.len()) {
            return Some(head);
        }
        let part = head.slice(self.next..end);
        (self.head, self.next) = (Some(head), end);
        Some(part)
    }
}

fn key(batch: &Batch, row: usize) -> Key {
    (batch.cell(), batch.replicates()[row], batch.checkpoints()[row])
}

impl<A, B> Merge<A, B>
where
    A: Iterator<Item = Result<Batch, Source>>,
    B: Iterator<Item = Result<Batch, Source>>,
{
    fn read(&mut self) -> Result<Option<Batch>, Source> {
        let (base, new) = (self.base.key()?, self.new.key()?);
        match (base, new) {
            (Some(a), Some(b)) => match a.cmp(&b) {
                Ordering::Less => Ok(self.base.take(new)),
                Ordering::Greater => Ok(self.new.take(base)),
                Ordering::Equal => {
                    let (cell, replicate, t) = a;
                    Err(Disorder::Twice { cell, replicate, t }.into())
                }
            },
            (Some(_), None) => Ok(self.base.take(None)),
            (None, _) => Ok(self.new.take(None)),
        }
    }
}

impl<A, B> Iterator for Merge<A, B>
where
    A: Iterator<Item = Result<Batch, Source>>,
    B: Iterator<Item = Result<Batch, Source>>,
{
    type Item = Result<Batch, Source>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let batch = self.read();
        self.ended = !matches!(batch, Ok(Some(_)));
        batch.transpose()
    }
}
