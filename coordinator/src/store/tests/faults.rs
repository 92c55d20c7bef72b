//! A disk that is full, lies about a sync, tears a write, or is too slow.

use std::sync::mpsc;
use std::time::Duration;

use super::disk::{BROKEN, FULL, Fault, Faulty, Operation};
use super::*;

async fn faulty(dir: &Path) -> (Store, Faulty) {
    let disk = Faulty::new(dir);
    let boxed = Box::new(disk.clone());
    let (store, _) =
        Store::open_on(dir, &Storage::default(), OPTIONS, Some(medium(boxed, 8192))).await.unwrap();
    store.put_study(STUDY, "a.toml", "", &[]).await.unwrap();
    (store, disk)
}

/// Commits, breaks the disk, commits, heals it, commits; the middle must fail, all else survive.
async fn survives(fault: impl FnMut(Operation) -> Option<Fault> + Send + 'static) -> Error {
    let dir = tempfile::tempdir().unwrap();
    let (store, disk) = faulty(dir.path()).await;
    let writer = store.writer();
    for token in 1..=5 {
        commit(&writer, token, row(1, token * 8..token * 8 + 8)).await.unwrap();
    }
    // This one has a batch behind it before the fault and comes back after it.
    let mut seven = writer.draft(7);
    append(&mut seven, 7, ..1).await.unwrap();
    commit(&writer, 6, row(1, 48..56)).await.unwrap();
    disk.fail(fault);
    let error = commit(&writer, 11, row(1, 88..96)).await.unwrap_err();
    disk.heal();
    append(&mut seven, 7, 1..).await.unwrap();
    seven.commit(row(1, 56..64), whole(7)).await.unwrap();
    commit(&writer, 13, row(1, 88..96)).await.unwrap();
    let all = [1, 2, 3, 4, 5, 6, 7, 13];
    assert_eq!(tokens(&store).await, all);
    store.close().await.unwrap();
    let (store, recovered) = open(dir.path()).await;
    assert!(recovered.damaged.is_empty());
    assert_eq!(tokens(&store).await, all);
    store.close().await.unwrap();
    remove_ledger(dir.path());
    let (store, _) = open(dir.path()).await;
    assert_eq!(tokens(&store).await, all);
    error
}

#[tokio::test]
async fn a_full_disk() {
    let error = survives(|operation| (operation == Operation::Append).then_some(FULL)).await;
    let Error::DiskFull { needed, .. } = error else { panic!("{error}") };
    assert!(error.to_string().contains(&format!("free {needed} bytes")), "{error}");
    assert!(error.to_string().contains("nothing acknowledged is lost"), "{error}");
}

#[tokio::test]
async fn a_torn_write_that_cannot_be_rolled_back() {
    survives(|operation| (operation != Operation::Sync).then_some(BROKEN)).await;
}

#[tokio::test]
async fn a_failed_sync_is_not_believed_later() {
    let mut first = true;
    // Only the first sync fails: what it did not sync must not become durable by the second.
    survives(move |operation| {
        (operation == Operation::Sync && std::mem::take(&mut first)).then_some(BROKEN)
    })
    .await;
}

#[tokio::test]
async fn a_batch_that_a_failed_sync_lost_fails_its_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (store, disk) = faulty(dir.path()).await;
    let writer = store.writer();
    // One group: the batch of token 7 lies in the segment when the sync for token 5 fails.
    disk.fail(|operation| (operation == Operation::Sync).then_some(BROKEN));
    let mut seven = writer.draft(7);
    append(&mut seven, 7, ..1).await.unwrap();
    assert!(commit(&writer, 5, row(1, 0..8)).await.is_err());
    disk.heal();
    append(&mut seven, 7, 1..).await.unwrap();
    let error = seven.commit(row(1, 8..16), whole(7)).await.unwrap_err();
    assert!(matches!(error, Error::Io { action: "sync", .. }), "{error}");
    assert!(tokens(&store).await.is_empty());
    commit(&writer, 9, row(1, 8..16)).await.unwrap();
    assert_eq!(tokens(&store).await, [9]);
}

#[tokio::test]
async fn a_ledger_without_room() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_study(dir.path()).await;
    let writer = store.writer();
    commit(&writer, 1, row(1, 0..8)).await.unwrap();
    store.ledger.limit_pages(1).await;
    let mut big = row(1, 8..16);
    big.tally = Bytes::from(vec![1; 100_000]);
    let error = commit(&writer, 2, big.clone()).await.unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    store.ledger.limit_pages(1 << 20).await;
    commit(&writer, 3, big).await.unwrap();
    assert_eq!(tokens(&store).await, [1, 3]);
}

/// What has been committed is not undone, so that nobody may be told that it failed.
#[tokio::test]
async fn a_change_stands_although_segments_cannot_be_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_study(dir.path()).await;
    let writer = store.writer();
    commit(&writer, 1, row(1, 0..8)).await.unwrap();
    commit(&writer, 2, row(1, 8..16)).await.unwrap();
    commit(&writer, 3, row(2, 0..8)).await.unwrap();
    // A folder in the place of a segment of an earlier life, which no deletion of files can remove.
    let stuck = segment::path(dir.path(), 7);
    std::fs::create_dir(&stuck).unwrap();
    store.give_up(STUDY, &[(CellId(1), 0..8)]).await.unwrap();
    assert_eq!(tokens(&store).await, [2, 3]);
    store.forget_cell(STUDY, CellId(1)).await.unwrap();
    assert_eq!(tokens(&store).await, [3]);
    let cells = [SealedCell { cell: CellId(2), replicates: 8 }];
    store.mark_sealed(STUDY, [9; 32], &cells).await.unwrap();
    assert!(stuck.exists());
    std::fs::remove_dir(stuck).unwrap();
    store.delete_study(STUDY).await.unwrap();
    assert_eq!(segments(dir.path()).len(), 1);
}

/// The ledger has the change; the segment that is to carry it cannot be begun.
#[tokio::test]
async fn a_deletion_stands_although_the_disk_fails_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let (store, disk) = faulty(dir.path()).await;
    let other = StudyId([8; 32]);
    store.put_study(other, "b.toml", "", &[]).await.unwrap();
    commit(&store.writer(), 1, row(1, 0..8)).await.unwrap();
    disk.fail(|operation| (operation == Operation::Create).then_some(BROKEN));
    store.delete_study(other).await.unwrap();
    // Without a segment that has the other study, none is deleted.
    store.forget_cell(STUDY, CellId(1)).await.unwrap_err();
    disk.heal();
    commit(&store.writer(), 2, row(1, 8..16)).await.unwrap();
    store.close().await.unwrap();
    remove_ledger(dir.path());
    let (store, recovered) = open(dir.path()).await;
    assert_eq!(recovered.studies.iter().map(|study| study.id).collect::<Vec<_>>(), [STUDY]);
    assert_eq!(tokens(&store).await, [1, 2]);
}

#[tokio::test]
async fn no_room_for_a_segment_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Faulty::new(dir.path());
    disk.fail(|_| Some(FULL));
    let error = Store::open_on(
        dir.path(),
        &Storage::default(),
        OPTIONS,
        Some(medium(Box::new(disk), 8192)),
    )
    .await
    .unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    open(dir.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_disk_slows_its_callers() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Faulty::new(dir.path());
    let boxed = Box::new(disk.clone());
    let (store, _) =
        Store::open_on(dir.path(), &Storage::default(), OPTIONS, Some(medium(boxed, 1 << 30)))
            .await
            .unwrap();
    let (release, blocked) = mpsc::channel::<()>();
    disk.fail(move |_| blocked.recv().err().and(None));
    let mut draft = store.writer().draft(1);
    let mut taken = 0;
    let batch = Bytes::from(vec![0; 1 << 20]);
    let wait = Duration::from_millis(300);
    while tokio::time::timeout(wait, draft.append(batch.clone(), whole(1))).await.is_ok() {
        taken += 1;
        assert!(taken < 100, "nothing bounds the queue");
    }
    assert!(taken >= 32, "{taken}");
    drop(release);
    let last = draft.append(batch, whole(1));
    tokio::time::timeout(Duration::from_secs(60), last).await.unwrap().unwrap();
    drop(draft);
    store.close().await.unwrap();
}
