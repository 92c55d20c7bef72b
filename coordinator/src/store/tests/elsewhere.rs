//! Records in an object store.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_bucket_needs_no_folder() {
    let Some(home) = Home::s3() else { return };
    let digest = *blake3::hash(b"points").as_bytes();
    let store = home.with_study().await;
    keep_file(&store, digest, b"points").await;
    for token in 0..9 {
        commit(&store.writer(), token, row(token % 2, token * 8..token * 8 + 8)).await.unwrap();
    }
    let shards = contents(&store).await;
    store.close().await.unwrap();
    // All that this machine had is gone.
    let other = Home { storage: home.storage.clone(), ..Home::folder().unwrap() };
    let (store, recovered) = other.open().await;
    assert!(recovered.rebuilt && recovered.damaged.is_empty());
    assert_eq!(contents(&store).await, shards);
    assert_eq!(store.file(digest).await.unwrap(), &b"points"[..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_gone_costs_its_shards_and_another_bucket_is_refused() {
    let Some(home) = Home::s3() else { return };
    let store = home.with_study().await;
    commit(&store.writer(), 1, row(1, 0..8)).await.unwrap();
    commit(&store.writer(), 2, row(1, 8..16)).await.unwrap();
    let shards = contents(&store).await;
    store.close().await.unwrap();
    let Held::Live(places) = &shards[&2].held else { panic!("{shards:?}") };
    let shelf = Shelf::open(home.dir.path(), &home.storage.records).unwrap();
    shelf.delete(|number| number == places[0].segment).unwrap();
    let (store, recovered) = home.open().await;
    assert_eq!(recovered.damaged.len(), 1);
    assert_eq!(tokens(&store).await, [1]);
    store.close().await.unwrap();
    let other = RecordsAt::S3(bucket().unwrap());
    let storage = Storage { records: other, ..Storage::default() };
    let error = Store::open_at(home.dir.path(), &storage, OPTIONS).await.unwrap_err();
    assert!(matches!(error, Error::OtherHome { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_object_is_ever_written_twice() {
    let Some(at) = bucket() else { return };
    let remote = remote::Remote::new(&at).unwrap();
    remote.create("segments/x", &Bytes::from_static(b"first")).unwrap();
    // The same request again, whose first answer was lost.
    remote.create("segments/x", &Bytes::from_static(b"first")).unwrap();
    let error = remote.create("segments/x", &Bytes::from_static(b"other")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(remote.get("segments/x").unwrap(), &b"first"[..]);
    assert_eq!(remote.list("segments").unwrap(), [("x".to_owned(), 5)]);
    remote.delete(&["segments/x".to_owned(), "segments/y".to_owned()]).unwrap();
    assert_eq!(remote.get("segments/x").unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_out_of_reach_says_so_and_loses_nothing() {
    let at: Bucket = "s3://data/x".parse().unwrap();
    let at = at
        .with("aws_endpoint", "http://127.0.0.1:1")
        .with("aws_access_key_id", "test")
        .with("aws_secret_access_key", "geheim");
    let storage = Storage { records: RecordsAt::S3(at), ..Storage::default() };
    assert!(!format!("{storage:?}").contains("geheim"));
    let dir = tempfile::tempdir().unwrap();
    let error = Store::open_at(dir.path(), &storage, OPTIONS).await.unwrap_err();
    // Without permission to use HTTP nothing is tried.
    assert!(error.to_string().contains("s3://data/x"), "{error}");
}

/// A folder with a file that is put in parts, and a small one.
fn sealed(large: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("records")).unwrap();
    std::fs::create_dir_all(folder.path().join(".regretta")).unwrap();
    std::fs::write(folder.path().join("records/part-0.parquet"), large).unwrap();
    std::fs::write(folder.path().join("manifest.json"), b"{}").unwrap();
    std::fs::write(folder.path().join(".regretta/ledger.db"), b"not part of it").unwrap();
    folder
}

async fn fetched(stored: &dataset::Stored, folder: &Path) -> usize {
    let missing = stored.missing(folder).await;
    stored.fetch(&missing, folder).await.unwrap();
    missing.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn datasets_come_back_and_only_what_changed_is_read() {
    let Some(at) = bucket().map(|bucket| bucket.join("datasets/lemma1")) else { return };
    let large: Vec<u8> = (0..40_000_000_u32).map(|i| (i ^ (i >> 11)) as u8).collect();
    let (from, to) = (sealed(&large), tempfile::tempdir().unwrap());
    assert_eq!(dataset::look(&at).await.unwrap(), None);
    let put = dataset::publish(from.path(), &at, None).await.unwrap();
    let seen = dataset::look(&at).await.unwrap().unwrap();
    assert_eq!(seen, put);
    assert_eq!(fetched(&seen, to.path()).await, 2);
    assert_eq!(std::fs::read(to.path().join("records/part-0.parquet")).unwrap(), large);
    assert!(!to.path().join(".regretta").exists());
    assert_eq!(fetched(&seen, to.path()).await, 0);
    std::fs::write(from.path().join("manifest.json"), b"{ }").unwrap();
    dataset::publish(from.path(), &at, Some(&seen)).await.unwrap();
    // Whoever is in the middle of the old one goes on with it.
    std::fs::remove_file(to.path().join("manifest.json")).unwrap();
    assert_eq!(fetched(&seen, to.path()).await, 1);
    assert_eq!(std::fs::read(to.path().join("manifest.json")).unwrap(), b"{}");
    let now = dataset::look(&at).await.unwrap().unwrap();
    assert_eq!(fetched(&now, to.path()).await, 1);
    assert_eq!(now.read("manifest.json").await.unwrap(), &b"{ }"[..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_is_replaced_by_whoever_has_seen_it_and_old_ones_go() {
    let Some(home) = bucket() else { return };
    let at = home.join("datasets/lemma1");
    let versions = [b"one", b"two", b"six"].map(|bytes| sealed(bytes));
    let first = dataset::publish(versions[0].path(), &at, None).await.unwrap();
    // The same again is no change.
    assert_eq!(dataset::publish(versions[0].path(), &at, Some(&first)).await.unwrap(), first);
    let again = dataset::publish(versions[0].path(), &at, None).await.unwrap();
    assert_eq!(again.index(), first.index());
    let second = dataset::publish(versions[1].path(), &at, Some(&first)).await.unwrap();
    // A coordinator that was asleep does not put an older dataset over a newer one.
    for over in [None, Some(&first)] {
        let error = dataset::publish(versions[2].path(), &at, over).await.unwrap_err();
        assert!(matches!(error, Error::Replaced { .. }), "{error}");
    }
    assert_eq!(dataset::look(&at).await.unwrap().unwrap(), second);
    dataset::publish(versions[2].path(), &at, Some(&second)).await.unwrap();
    second.read("manifest.json").await.unwrap();
    let error = first.read("manifest.json").await.unwrap_err();
    assert!(matches!(error, Error::Altered { .. }), "{error}");
    assert_eq!(dataset::below(&home).await.unwrap(), [at.to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_objects_are_named_and_never_kept() {
    let Some(at) = bucket().map(|bucket| bucket.join("datasets/lemma1")) else { return };
    let (from, to) = (sealed(b"records"), tempfile::tempdir().unwrap());
    let stored = dataset::publish(from.path(), &at, None).await.unwrap();
    let object = format!("{}/records/part-0.parquet", stored.index().version());
    let remote = remote::Remote::new(&at).unwrap();
    for damage in [&b"recorbs"[..], b"rec", b"records and more"] {
        remote.delete(std::slice::from_ref(&object)).unwrap();
        remote.create(&object, &Bytes::copy_from_slice(damage)).unwrap();
        let error = stored.fetch(&stored.index().0, to.path()).await.unwrap_err();
        assert!(matches!(error, Error::Altered { .. }), "{error}");
        assert!(error.to_string().contains(&object), "{error}");
        assert_eq!(std::fs::read_dir(to.path().join("records")).unwrap().count(), 0);
    }
    remote.delete(&["current".to_owned()]).unwrap();
    remote.create("current", &Bytes::from_static(b"half an index")).unwrap();
    let error = dataset::look(&at).await.unwrap_err();
    assert!(error.to_string().contains("current"), "{error}");
}
