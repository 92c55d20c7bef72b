//! A study whose row is not what was written is set aside with all that it has; the others are there.

use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection, raw_sql};

use super::*;

const OTHER: StudyId = StudyId([8; 32]);

/// Runs a statement on the ledger of a folder that nobody has open.
async fn sql(dir: &Path, statement: &str) {
    let path = dir.join("ledger.db");
    let mut connection =
        SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let done = raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await;
    assert!(done.unwrap().rows_affected() > 0, "{statement}");
    connection.close().await.unwrap();
}

/// Two studies with two shards each; the first one names a file.
async fn two(dir: &Path) {
    let store = with_study(dir).await;
    let digest = *blake3::hash(b"points").as_bytes();
    keep_file(&store, digest, b"points").await;
    let files = [("points.csv".to_owned(), digest)];
    store.put_study(STUDY, "a.toml", "[study]", &files).await.unwrap();
    store.put_study(OTHER, "b.toml", "text", &[]).await.unwrap();
    for token in 1..3 {
        let range = token * 8..token * 8 + 8;
        commit(&store.writer(), token, row(1, range.clone())).await.unwrap();
        let other = ShardRow { study: OTHER, ..row(1, range) };
        commit(&store.writer(), token + 10, other).await.unwrap();
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_damaged_row_costs_its_study_alone_and_no_data() {
    for damage in [
        "UPDATE studies SET text = 'other'",
        "UPDATE studies SET text = CAST(x'ff' AS TEXT)",
        "UPDATE studies SET file_name = CAST(x'ff' AS TEXT)",
        "UPDATE studies SET state = 'unheard of'",
        "UPDATE studies SET state = 'cancelled'",
        "UPDATE studies SET reason = 'because'",
        "UPDATE studies SET sealed = x'00'",
        "UPDATE studies SET checksum = x''",
        "UPDATE studies SET id = x'0102'",
        "UPDATE studies SET id = zeroblob(32)",
        "DELETE FROM study_files",
        "UPDATE study_files SET path = 'other.csv'",
        "UPDATE study_files SET path = CAST(x'ff' AS TEXT)",
        "UPDATE study_files SET digest = x'00'",
    ] {
        let dir = tempfile::tempdir().unwrap();
        two(dir.path()).await;
        let table = if damage.contains("study_files") { "study" } else { "number" };
        sql(dir.path(), &format!("{damage} WHERE {table} = 1")).await;
        for _ in 0..2 {
            let (store, recovered) = open(dir.path()).await;
            let [sound] = &recovered.studies[..] else { panic!("{damage}: {recovered:?}") };
            assert_eq!((sound.id, sound.text.as_str()), (OTHER, "text"));
            let [damaged] = &recovered.damaged_studies[..] else { panic!("{damage}") };
            assert!(damaged.reason.contains("ledger"), "{}", damaged.reason);
            assert!(recovered.damaged.is_empty(), "{damage}: {:?}", recovered.damaged);
            assert_eq!(store.shards(OTHER).await.unwrap().len(), 2);
            // It can be deleted, whatever its id is.
            if damage.contains("id =") {
                store.delete_study(damaged.id).await.unwrap();
                store.put_study(STUDY, "a.toml", "[study]", &[]).await.unwrap();
                assert_eq!(store.shards(STUDY).await.unwrap(), []);
                store.close().await.unwrap();
                break;
            }
            store.close().await.unwrap();
        }
        let (store, recovered) = open(dir.path()).await;
        if let [damaged] = &recovered.damaged_studies[..] {
            assert_eq!(damaged.id, STUDY);
            // Put again it has what it had.
            store.put_study(STUDY, "a.toml", "[study]", &[]).await.unwrap();
            assert_eq!(store.verify_study(STUDY).await.unwrap(), []);
            assert_eq!(tokens(&store).await, [1, 2], "{damage}");
            assert_eq!(store.studies().await.unwrap().len(), 2);
        }
    }
}

#[tokio::test]
async fn a_damaged_study_is_not_lost_to_the_segments() {
    let dir = tempfile::tempdir().unwrap();
    two(dir.path()).await;
    sql(dir.path(), "UPDATE studies SET text = 'other' WHERE number = 1").await;
    for _ in 0..3 {
        // Every start begins a new segment, and deletes those that nothing needs.
        open(dir.path()).await.0.close().await.unwrap();
    }
    remove_ledger(dir.path());
    let (store, recovered) = open(dir.path()).await;
    assert!(recovered.rebuilt && recovered.damaged_studies.is_empty());
    assert_eq!(recovered.studies.len(), 2);
    assert_eq!(tokens(&store).await, [1, 2]);
}

#[tokio::test]
async fn a_damaged_shard_is_dropped_whatever_is_wrong_with_it() {
    for damage in [
        "UPDATE shards SET digest = x'00'",
        "UPDATE shards SET checkpoints = x''",
        "UPDATE shards SET worker = CAST(x'ff' AS TEXT)",
        "UPDATE shards SET places = x'ffff'",
        "UPDATE shards SET tally = x'07'",
        "UPDATE shards SET checksum = x''",
        "UPDATE shards SET records = -1",
    ] {
        let dir = tempfile::tempdir().unwrap();
        two(dir.path()).await;
        sql(dir.path(), &format!("{damage} WHERE token = 2")).await;
        let (store, recovered) = open(dir.path()).await;
        let [damaged] = &recovered.damaged[..] else { panic!("{damage}: {recovered:?}") };
        assert_eq!((damaged.study, damaged.range.clone()), (STUDY, 16..24));
        assert_eq!(tokens(&store).await, [1]);
    }
}

#[tokio::test]
async fn a_look_from_outside_says_what_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    two(dir.path()).await;
    sql(dir.path(), "UPDATE studies SET text = 'other' WHERE number = 1").await;
    let error = peek(dir.path()).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}
