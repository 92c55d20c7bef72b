//! Studies that are deleted stay deleted, and start afresh.

use super::*;

everywhere! {
    a_deleted_study_stays_deleted_and_starts_afresh,
    deletions_are_forgotten_with_the_segments_that_they_are_about,
}

const OTHER: StudyId = StudyId([8; 32]);

fn of(study: StudyId, cell: u64, range: Range<u64>) -> ShardRow {
    ShardRow { study, ..row(cell, range) }
}

/// The tokens of a study's shards, after reading every one of them.
async fn tokens_of(store: &Store, study: StudyId) -> Vec<u64> {
    let mut reader = store.reader();
    let mut tokens = Vec::new();
    for shard in store.shards(study).await.unwrap() {
        let read: Result<Vec<Bytes>, Error> = reader.read(&shard).unwrap().collect();
        assert_eq!(read.unwrap(), batches(shard.token), "{shard:?}");
        tokens.push(shard.token);
    }
    tokens
}

async fn ids(store: &Store) -> Vec<StudyId> {
    store.studies().await.unwrap().into_iter().map(|study| study.id).collect()
}

async fn a_deleted_study_stays_deleted_and_starts_afresh(home: Home) {
    let store = home.with_study().await;
    store.put_study(OTHER, "b.toml", "", &[]).await.unwrap();
    let writer = store.writer();
    for token in 1..5 {
        // Both have shards in every segment, so that none of them goes with the study.
        let both = [of(STUDY, 1, token * 8..token * 8 + 8), of(OTHER, 1, token * 8..token * 8 + 8)];
        let [first, second] = both;
        let committed = futures_util::future::join(
            commit(&writer, token, first),
            commit(&writer, token + 100, second),
        );
        let (first, second) = committed.await;
        assert_eq!((first.unwrap(), second.unwrap()), (Committed::New, Committed::New));
    }
    let death = Death { cell: CellId(1), range: 0..8, deaths: 4, reason: "expired".to_owned() };
    store.record_death(STUDY, &death).await.unwrap();
    store.delete_study(STUDY).await.unwrap();
    // Once more does no harm.
    store.delete_study(STUDY).await.unwrap();
    assert_eq!(ids(&store).await, [OTHER]);
    assert_eq!(store.shards(STUDY).await.unwrap(), []);
    let refused = commit(&writer, 9, of(STUDY, 1, 80..88)).await.unwrap_err();
    assert!(matches!(refused, Error::UnknownStudy(STUDY)), "{refused}");
    store.close().await.unwrap();

    for lost in [false, true, true] {
        if lost {
            home.lose_ledger();
        }
        let (store, recovered) = home.open().await;
        assert_eq!((recovered.rebuilt, ids(&store).await), (lost, vec![OTHER]));
        assert_eq!(tokens_of(&store, OTHER).await, [101, 102, 103, 104]);
        store.close().await.unwrap();
    }

    let (store, _) = home.open().await;
    store.put_study(STUDY, "a.toml", "[study]", &[]).await.unwrap();
    assert_eq!(store.shards(STUDY).await.unwrap(), []);
    assert_eq!(store.deaths(STUDY).await.unwrap(), []);
    commit(&store.writer(), 7, of(STUDY, 1, 0..8)).await.unwrap();
    store.close().await.unwrap();
    for lost in [false, true, true] {
        if lost {
            home.lose_ledger();
        }
        let (store, _) = home.open().await;
        assert_eq!(ids(&store).await.len(), 2);
        assert_eq!(tokens_of(&store, STUDY).await, [7], "what was deleted comes back");
        assert_eq!(tokens_of(&store, OTHER).await, [101, 102, 103, 104]);
        store.close().await.unwrap();
    }
}

async fn deletions_are_forgotten_with_the_segments_that_they_are_about(home: Home) {
    let store = home.with_study().await;
    store.put_study(OTHER, "b.toml", "", &[]).await.unwrap();
    commit(&store.writer(), 1, of(STUDY, 1, 0..8)).await.unwrap();
    commit(&store.writer(), 2, of(OTHER, 1, 0..8)).await.unwrap();
    store.delete_study(STUDY).await.unwrap();
    let deleted: Vec<StudyId> =
        store.ledger.deleted().await.unwrap().into_iter().map(|deleted| deleted.study).collect();
    assert!(deleted.is_empty() || deleted == [STUDY], "{deleted:?}");
    store.delete_study(OTHER).await.unwrap();
    assert_eq!(store.ledger.deleted().await.unwrap(), [], "no segment is left that knows of them");
    assert!(home.segments().len() <= 1, "{:?}", home.segments());
    store.close().await.unwrap();
    home.lose_ledger();
    let (store, recovered) = home.open().await;
    assert_eq!((recovered.studies, ids(&store).await), (vec![], vec![]));
}
