//! Work by several threads whose results are taken in order.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;

/// Results that may wait for those before them, per thread.
const AHEAD: usize = 4;

/// How far the results have been taken; `None` when no more are wanted.
struct Progress {
    taken: Mutex<Option<usize>>,
    moved: Condvar,
}

impl Progress {
    /// Waits until an item is near enough; `false` when no more are wanted.
    fn admits(&self, item: usize, window: usize) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while taken.is_some_and(|taken| item >= taken + window) {
            taken = self.moved.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        taken.is_some()
    }

    fn set(&self, taken: Option<usize>) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = taken;
        self.moved.notify_all();
    }
}

/// Computes `work` of every item on as many threads as there are cores, and hands the results to `take`
/// in the items' order. The first error ends it. Few results exist at a time. What a thread leaves in its
/// `S` is there for its next item.
///
/// These threads are not rayon's: work that waits for a pool would there be interrupted by other work,
/// which would then be in its way.
pub(super) fn in_order<T: Sync, S: Default, R: Send, E>(
    items: &[T],
    work: impl Fn(&mut S, &T) -> R + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let progress = Progress { taken: Mutex::new(Some(0)), moved: Condvar::new() };
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, work, next, progress) = (sender.clone(), &work, &next, &progress);
            scope.spawn(move || {
                let mut own = S::default();
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(place) else { break };
                    let wanted = progress.admits(place, AHEAD * threads);
                    if !wanted || sender.send((place, work(&mut own, item))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut due = 0;
        for (place, result) in &results {
            waiting.insert(place, result);
            while let Some(result) = waiting.remove(&due) {
                due += 1;
                if let Err(error) = take(result) {
                    progress.set(None);
                    return Err(error);
                }
                progress.set(Some(due));
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        let items: Vec<u64> = (0..500).collect();
        let mut taken = Vec::new();
        let work = |(): &mut (), item: &u64| {
            // Uneven work, so that threads overtake each other.
            (0..(item * 7919) % 1000).for_each(|step| _ = std::hint::black_box(step));
            *item
        };
        in_order(&items, work, |result| {
            taken.push(result);
            Ok::<(), ()>(())
        })
        .unwrap();
        assert_eq!(taken, items);
    }

    #[test]
    fn the_first_error_ends_it() {
        let items: Vec<u64> = (0..500).collect();
        let mut taken = 0;
        let outcome = in_order(
            &items,
            |(): &mut (), item| *item,
            |result| {
                taken += 1;
                if result == 100 { Err(result) } else { Ok(()) }
            },
        );
        assert_eq!((outcome, taken), (Err(100), 101));
        assert_eq!(in_order(&[], |(): &mut (), item: &u64| *item, |_| Err(())), Ok(()));
    }
}
