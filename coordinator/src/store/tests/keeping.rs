//! What is put comes back, over restarts, lost ledgers, sealing and forgetting.

use super::*;

everywhere! {
    shards_come_back,
    studies_files_deaths_and_checks_come_back,
    a_lost_ledger_is_rebuilt,
    sealing_frees_segments_and_a_grown_study_goes_on,
    a_forgotten_cell_starts_anew_and_stays_so,
    restarts_leave_no_empty_segments,
}

async fn shards_come_back(home: Home) {
    let store = home.with_study().await;
    let writer = store.writer();
    // Two tokens interleave; a third is never committed.
    let [mut two, mut three, mut seven] = [2, 3, 7].map(|token| writer.draft(token));
    for i in 0..4 {
        for (draft, token) in [(&mut two, 2), (&mut three, 3), (&mut seven, 7)] {
            append(draft, token, i..=i).await.unwrap();
        }
    }
    drop(seven);
    assert_eq!(three.commit(row(9, 0..8), whole(3)).await.unwrap(), Committed::New);
    assert_eq!(two.commit(row(u64::MAX, 8..16), whole(2)).await.unwrap(), Committed::New);
    let shards = contents(&store).await;
    assert_eq!(shards[&3].row, row(9, 0..8));
    assert_eq!(shards[&2].row, row(u64::MAX, 8..16));
    assert_eq!(shards.len(), 2);
    store.close().await.unwrap();
    assert!(matches!(commit(&writer, 4, row(1, 0..1)).await, Err(Error::Closed)));

    let (store, recovered) = home.open().await;
    assert_eq!(recovered.first_epoch, 2 << 32);
    assert_eq!((recovered.torn_bytes, recovered.rebuilt), (0, false));
    assert!(recovered.damaged.is_empty());
    assert_eq!(contents(&store).await, shards);
    let order: Vec<CellId> =
        store.shards(STUDY).await.unwrap().into_iter().map(|shard| shard.row.cell).collect();
    assert_eq!(order, [CellId(9), CellId(u64::MAX)]);
}

async fn studies_files_deaths_and_checks_come_back(home: Home) {
    let (store, recovered) = home.open().await;
    assert_eq!(recovered.first_epoch, 1 << 32);
    let digest = *blake3::hash(b"points").as_bytes();
    keep_file(&store, digest, b"points").await;
    store.put_study(STUDY, "a.toml", "old", &[]).await.unwrap();
    store.set_state(STUDY, State::Cancelled, "by the user").await.unwrap();
    let files = [("points.csv".to_owned(), digest)];
    let earlier = "what was tested before".to_owned();
    store.put_study_after(STUDY, "a.toml", "changed", &files, earlier.clone()).await.unwrap();
    store.put_study(STUDY, "a.toml", "grown", &files).await.unwrap();
    store.set_state(STUDY, State::Alarmed, "w1 and w2 disagree").await.unwrap();
    let mut death =
        Death { cell: CellId(u64::MAX), range: 0..8, deaths: 1, reason: "expired".to_owned() };
    store.record_death(STUDY, &death).await.unwrap();
    death.deaths = 5;
    store.record_death(STUDY, &death).await.unwrap();
    let (cell, worker) = (CellId(1), "w2".to_owned());
    let check = Check { cell, range: 8..16, digest: [4; 32], agreed: true, worker };
    store.record_check(STUDY, &check).await.unwrap();
    store.close().await.unwrap();

    let (store, recovered) = home.open().await;
    let study = StoredStudy {
        id: STUDY,
        file_name: "a.toml".to_owned(),
        text: "grown".to_owned(),
        files: files.to_vec(),
        state: State::Alarmed,
        reason: "w1 and w2 disagree".to_owned(),
        sealed: None,
        earlier,
    };
    assert_eq!(recovered.studies, [study]);
    assert_eq!(store.studies().await.unwrap(), recovered.studies);
    assert_eq!(store.file(digest).await.unwrap(), &b"points"[..]);
    assert_eq!(store.deaths(STUDY).await.unwrap(), [death]);
    assert_eq!(store.checks(STUDY).await.unwrap(), [check]);
}

async fn a_lost_ledger_is_rebuilt(home: Home) {
    let store = home.with_study().await;
    for token in 0..9 {
        commit(&store.writer(), token, row(token % 2, token * 8..token * 8 + 8)).await.unwrap();
    }
    store.set_state(STUDY, State::Done, "").await.unwrap();
    let (studies, shards) = (store.studies().await.unwrap(), contents(&store).await);
    store.close().await.unwrap();
    for restarts in 2..4 {
        home.lose_ledger();
        let (store, recovered) = home.open().await;
        assert!(recovered.rebuilt && recovered.damaged.is_empty());
        assert_eq!(recovered.first_epoch, restarts << 32);
        assert_eq!(recovered.studies, studies);
        assert_eq!(contents(&store).await, shards);
        store.close().await.unwrap();
    }
    let other = Options { numerics: "numerics-b", ..OPTIONS };
    home.lose_ledger();
    assert!(matches!(home.try_open(other).await, Err(Error::OtherNumerics { .. })));
}

#[tokio::test]
async fn a_corrupted_ledger_says_what_to_do_and_is_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_study(dir.path()).await;
    for token in 0..200 {
        commit(&store.writer(), token, row(1, token * 8..token * 8 + 8)).await.unwrap();
    }
    let shards = contents(&store).await;
    store.close().await.unwrap();
    let path = dir.path().join("ledger.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let pages = bytes.len() / 4096;
    assert!(pages > 12);
    for page in [0, 5, pages - 2] {
        let good = bytes[page * 4096..][..4096].to_vec();
        bytes[page * 4096..][..4096].fill(0xa5);
        std::fs::write(&path, &bytes).unwrap();
        let error = Store::open(dir.path(), OPTIONS).await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains("move it away"), "{error}");
        bytes[page * 4096..][..4096].copy_from_slice(&good);
    }
    std::fs::rename(&path, dir.path().join("ledger.bad")).unwrap();
    let (store, recovered) = open(dir.path()).await;
    assert!(recovered.rebuilt);
    assert_eq!(contents(&store).await, shards);
}

#[tokio::test]
async fn an_older_ledger_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    with_study(dir.path()).await.close().await.unwrap();
    let (path, old) = (dir.path().join("ledger.db"), dir.path().join("ledger.old"));
    std::fs::copy(&path, &old).unwrap();
    let (store, _) = open(dir.path()).await;
    commit(&store.writer(), 1, row(1, 0..8)).await.unwrap();
    store.close().await.unwrap();
    std::fs::rename(&old, &path).unwrap();
    let error = Store::open(dir.path(), OPTIONS).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    remove_ledger(dir.path());
    let (store, _) = open(dir.path()).await;
    assert_eq!(tokens(&store).await, [1]);
}

#[tokio::test]
async fn a_changed_value_in_a_sound_page_costs_its_shard() {
    let dir = tempfile::tempdir().unwrap();
    let store = with_study(dir.path()).await;
    let mut odd = row(1, 8..16);
    odd.tally = Bytes::from_static(b"a tally that is easily found");
    commit(&store.writer(), 1, row(1, 0..8)).await.unwrap();
    commit(&store.writer(), 2, odd.clone()).await.unwrap();
    store.close().await.unwrap();
    let path = dir.path().join("ledger.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(odd.tally.len()).position(|window| window == odd.tally).unwrap();
    bytes[at + 3] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (store, recovered) = open(dir.path()).await;
    let [damaged] = &recovered.damaged[..] else { panic!("{recovered:?}") };
    assert_eq!((damaged.cell, damaged.range.clone()), (CellId(1), 8..16));
    assert_eq!(tokens(&store).await, [1]);
    commit(&store.writer(), 5, odd).await.unwrap();
    assert_eq!(tokens(&store).await, [1, 5]);
}

async fn sealing_frees_segments_and_a_grown_study_goes_on(home: Home) {
    let store = home.open_small().await;
    store.put_study(STUDY, "a.toml", "", &[]).await.unwrap();
    let writer = store.writer();
    for token in 1..=60 {
        commit(&writer, token, row(1, token * 8..token * 8 + 8)).await.unwrap();
    }
    commit(&writer, 61, row(2, 0..8)).await.unwrap();
    let before = home.segments();
    assert!(before.len() > 3);
    let mut late = writer.draft(99);
    append(&mut late, 99, ..1).await.unwrap();
    // Cell 1 stopped after 480 replicates; what lies beyond is in no dataset.
    let cells = [SealedCell { cell: CellId(1), replicates: 480 }];
    store.mark_sealed(STUDY, [9; 32], &cells).await.unwrap();
    let after = home.segments();
    assert!(after.len() <= 2, "{after:?}");
    let shards = store.shards(STUDY).await.unwrap();
    assert_eq!(shards.len(), 59);
    assert!(shards.iter().all(|shard| shard.held == Held::Sealed && shard.row.range.end <= 480));
    assert!(matches!(store.reader().read(&shards[0]).map(|_| ()), Err(Error::Sealed)));
    assert_eq!(store.studies().await.unwrap()[0].sealed, Some([9; 32]));

    append(&mut late, 99, 1..).await.unwrap();
    late.commit(row(1, 480..488), whole(99)).await.unwrap();
    let again = commit(&writer, 100, row(1, 8..16)).await.unwrap();
    assert_eq!(again, Committed::Duplicate);
    store.close().await.unwrap();
    let (store, recovered) = home.open().await;
    assert!(recovered.damaged.is_empty());
    let shards = store.shards(STUDY).await.unwrap();
    assert_eq!(shards.len(), 60);
    let live: Vec<_> = shards.into_iter().filter(|shard| shard.held != Held::Sealed).collect();
    assert_eq!(live.iter().map(|shard| shard.token).collect::<Vec<_>>(), [99]);
    let read: Result<Vec<_>, _> = store.reader().read(&live[0]).unwrap().collect();
    assert_eq!(read.unwrap(), batches(99));
}

async fn a_forgotten_cell_starts_anew_and_stays_so(home: Home) {
    let store = home.with_study().await;
    let writer = store.writer();
    for token in 1..4 {
        commit(&writer, token, row(1, token * 8..token * 8 + 8)).await.unwrap();
    }
    commit(&writer, 4, row(2, 0..8)).await.unwrap();
    store.forget_cell(STUDY, CellId(1)).await.unwrap();
    assert_eq!(tokens(&store).await, [4]);
    let grown = ShardRow { checkpoints: [2; 32], ..row(1, 0..4) };
    commit(&writer, 5, grown).await.unwrap();
    assert_eq!(tokens(&store).await, [4, 5]);
    store.close().await.unwrap();
    home.lose_ledger();
    let (store, _) = home.open().await;
    assert_eq!(tokens(&store).await, [4, 5]);
}

async fn restarts_leave_no_empty_segments(home: Home) {
    home.with_study().await.close().await.unwrap();
    for restart in 2..5 {
        let (store, recovered) = home.open().await;
        assert_eq!(recovered.first_epoch, restart << 32);
        assert_eq!(home.segments().len(), 1);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_new_ledger_may_be_looked_at_while_it_is_made() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.db");
        let opened = futures_util::future::join_all((0..8).map(|_| Ledger::open(&path))).await;
        for ledger in opened {
            assert_eq!(ledger.unwrap().sound_studies().await.unwrap(), []);
        }
    }
}
