//! What a store does not take, and what it says.

use futures_util::future::join_all;

use super::*;

everywhere! { the_same_trials_twice, one_group_keeps_the_rules_too }

async fn the_same_trials_twice(home: Home) {
    let store = home.with_study().await;
    let writer = store.writer();
    commit(&writer, 1, row(1, 8..16)).await.unwrap();
    assert_eq!(commit(&writer, 2, row(1, 8..16)).await.unwrap(), Committed::Duplicate);

    let other = ShardRow { digest: [0; 32], worker: "w2".to_owned(), ..row(1, 8..16) };
    let error = commit(&writer, 3, other).await.unwrap_err();
    assert!(matches!(error, Error::Disagreement { .. }));
    assert!(error.to_string().contains("w1 and w2"), "{error}");
    for range in [0..9, 15..20, 10..12, 0..30, 8..12, 12..16, 8..17] {
        let error = commit(&writer, 3, row(1, range.clone())).await.unwrap_err();
        assert!(matches!(error, Error::Overlap { .. }), "{range:?}: {error}");
    }
    for range in [0..8, 16..24] {
        let error = ShardRow { checkpoints: [2; 32], ..row(1, range) };
        let error = commit(&writer, 3, error).await.unwrap_err();
        assert!(matches!(error, Error::OtherCheckpoints { .. }), "{error}");
    }
    for range in [4..4, 0..u64::MAX] {
        let error = commit(&writer, 3, row(1, range)).await.unwrap_err();
        assert!(matches!(error, Error::BadRange { .. }), "{error}");
    }
    let unknown = ShardRow { study: StudyId([8; 32]), ..row(1, 0..8) };
    let error = commit(&writer, 3, unknown).await.unwrap_err();
    assert!(matches!(error, Error::UnknownStudy(_)), "{error}");
    commit(&writer, 4, row(1, 0..8)).await.unwrap();
    assert_eq!(tokens(&store).await, [1, 4]);

    // Nothing refused comes back with a new ledger.
    store.close().await.unwrap();
    home.lose_ledger();
    let (store, _) = home.open().await;
    assert_eq!(tokens(&store).await, [1, 4]);
}

/// A shard is taken with all that came of it or not at all.
#[tokio::test]
async fn batches_that_do_not_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_study(dir.path()).await;
    let writer = store.writer();
    let drafted = async |token: u64, sum: Sum, records: u64| {
        let mut draft = writer.draft(token);
        append(&mut draft, token, ..).await.unwrap();
        draft.commit(ShardRow { records, ..row(1, 0..8) }, sum).await
    };
    let other = Sum { digest: [0; 32], ..whole(3) };
    let fewer = Sum { records: 7, ..whole(3) };
    for (sum, records) in [(other, 8), (fewer, 7), (whole(3), 9)] {
        let error = drafted(3, sum, records).await.unwrap_err();
        let Error::Incomplete { expected, found, .. } = error else { panic!("{error}") };
        assert_eq!((expected, found), (records, 8));
    }
    // No batch came at all.
    let error = writer.draft(4).commit(row(1, 0..8), whole(4)).await.unwrap_err();
    assert!(matches!(error, Error::Incomplete { expected: 8, found: 0, .. }), "{error}");
    assert!(tokens(&store).await.is_empty());
    assert_eq!(drafted(3, whole(3), 8).await.unwrap(), Committed::New);
}

async fn one_group_keeps_the_rules_too(home: Home) {
    let store = home.with_study().await;
    let writer = store.writer();
    let rows = [
        row(1, 0..8),
        row(1, 0..8),
        row(1, 4..12),
        row(1, 8..16),
        ShardRow { checkpoints: [2; 32], ..row(1, 16..24) },
        ShardRow { digest: [0; 32], ..row(1, 8..16) },
        row(2, 0..8),
    ];
    let results =
        join_all((10_u64..).zip(rows).map(|(token, row)| commit(&writer, token, row))).await;
    assert!(
        matches!(
            results[..],
            [
                Ok(Committed::New),
                Ok(Committed::Duplicate),
                Err(Error::Overlap { .. }),
                Ok(Committed::New),
                Err(Error::OtherCheckpoints { .. }),
                Err(Error::Disagreement { .. }),
                Ok(Committed::New),
            ]
        ),
        "{results:?}"
    );
}

#[tokio::test]
async fn other_numerics_newer_schema_second_opener() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path()).await;
    let error = Store::open(dir.path(), OPTIONS).await.unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    store.close().await.unwrap();

    let other = Options { numerics: "numerics-b", ..OPTIONS };
    let error = Store::open(dir.path(), other).await.unwrap_err().to_string();
    assert!(error.contains("numerics-a") && error.contains("numerics-b"), "{error}");

    let path = dir.path().join("ledger.db");
    let mut bytes = std::fs::read(&path).unwrap();
    // SQLite keeps user_version here.
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let error = Store::open(dir.path(), OPTIONS).await.unwrap_err();
    assert!(matches!(error, Error::Newer { found: 99, known: 3, .. }), "{error}");
}

#[tokio::test]
async fn a_batch_over_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_study(dir.path()).await;
    let batch = Bytes::from(vec![0; MAX_PAYLOAD + 1]);
    let error = store.writer().draft(1).append(batch, whole(1)).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}
