//! Records in an object store.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_bucket_needs_no_folder() {
    let Some(home) = Home::s3() else { return };
    let digest = *blake3::hash(b"points").as_bytes();
    let store = home.with_study().await;
    store.put_file(digest, Bytes::from_static(b"points")).await.unwrap();
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

#[tokio::test(flavor = "multi_thread")]
async fn datasets_come_back_and_only_what_changed_is_read() {
    let Some(at) = bucket().map(|bucket| bucket.join("studies/lemma1")) else { return };
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |name: &str, bytes: &[u8]| {
        let path = from.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    // One that is put in parts.
    let large: Vec<u8> = (0..40_000_000_u32).map(|i| (i ^ (i >> 11)) as u8).collect();
    write("records/part-0.parquet", &large);
    write("manifest.json", b"{}");
    write(".regretta/ledger.db", b"not part of it");
    publish_dataset(from.path(), &at).await.unwrap();
    assert_eq!(fetch_dataset(&at, to.path()).await.unwrap(), 2);
    assert_eq!(std::fs::read(to.path().join("records/part-0.parquet")).unwrap(), large);
    assert!(!to.path().join(".regretta").exists());
    assert_eq!(fetch_dataset(&at, to.path()).await.unwrap(), 0);
    write("manifest.json", b"{ }");
    publish_dataset(from.path(), &at).await.unwrap();
    assert_eq!(fetch_dataset(&at, to.path()).await.unwrap(), 1);
    assert_eq!(std::fs::read(to.path().join("manifest.json")).unwrap(), b"{ }");
    let error = fetch_dataset(&at.join("nothing"), to.path()).await.unwrap_err();
    assert!(error.to_string().contains("studies/lemma1/nothing"), "{error}");
}
