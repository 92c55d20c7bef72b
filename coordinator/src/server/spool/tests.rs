use bytes::Bytes;
use futures_util::stream;
use proto::convert::{Submission, pieces};
use proto::v1::submit_request::Message;

use super::*;

fn submission() -> Submission {
    let large: Vec<u8> = (0..3_000_000_u32).map(|i| i as u8).collect();
    let files =
        vec![("a.csv".to_owned(), large), ("b.csv".to_owned(), vec![]), ("c".to_owned(), vec![7])];
    Submission { file_name: "s.toml".to_owned(), text: "[study]".to_owned(), files }
}

/// The beginning of a submission of one file of so many bytes.
fn announced(size: u64) -> v1::SubmitRequest {
    let file = v1::SubmittedFile { path: "a.csv".to_owned(), size };
    let file_name = "s.toml".to_owned();
    let study = v1::SubmittedStudy { file_name, text: String::new(), files: vec![file] };
    v1::SubmitRequest { message: Some(Message::Study(study)) }
}

fn data(length: usize) -> v1::SubmitRequest {
    v1::SubmitRequest { message: Some(Message::Data(Bytes::from(vec![0; length]))) }
}

fn folders(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("spool")).unwrap().count()
}

#[tokio::test]
async fn files_are_on_disk_until_they_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path()).unwrap();
    let upload = spool.receive(stream::iter(pieces(submission()).map(Ok))).await.unwrap();
    let Submission { file_name, text, files } = submission();
    assert_eq!((&upload.source.file_name, &upload.source.text), (&file_name, &text));
    assert_eq!(upload.source.files.len(), files.len());
    for (file, (path, content)) in upload.source.files.iter().zip(&files) {
        assert_eq!((&file.path, file.size), (path, content.len() as u64));
        assert_eq!(std::fs::read(&file.place).unwrap(), *content);
        assert_eq!(file.digest, *blake3::hash(content).as_bytes());
    }
    assert_eq!(folders(dir.path()), 1);
    drop(upload);
    assert_eq!(folders(dir.path()), 0);
    let definition = Definition { file_name, text, files };
    let from_here = spool.put(definition).await.unwrap();
    assert_eq!(
        from_here.source.files[0].digest,
        *blake3::hash(&submission().files[0].1).as_bytes()
    );
    assert_eq!(std::fs::read(&from_here.source.files[1].place).unwrap(), b"");
}

#[tokio::test]
async fn what_a_life_before_left_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("spool/7");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join("0"), b"unfinished").unwrap();
    let spool = Spool::open(dir.path()).unwrap();
    assert_eq!(folders(dir.path()), 0);
    let upload = spool.receive(stream::iter(pieces(submission()).map(Ok))).await;
    assert!(upload.is_ok());
}

/// The clock stands still while files are written, and jumps where everything waits.
#[tokio::test(start_paused = true)]
async fn an_upload_that_stalls_or_trickles_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path()).unwrap();
    let begun = stream::iter([Ok(announced(10)), Ok(data(4))]);
    let stalls = spool.receive(begun.chain(stream::pending())).await;
    assert!(matches!(stalls, Err(SpoolError::Slow)));
    assert!(matches!(spool.receive(stream::pending()).await, Err(SpoolError::Slow)));
    let begun = Instant::now();
    let bytes = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(20)).await;
        Some((Ok(data(1)), ()))
    });
    let trickles = spool.receive(stream::iter([Ok(announced(1000))]).chain(bytes)).await;
    assert!(matches!(trickles, Err(SpoolError::Slow)));
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(folders(dir.path()), 0);
    // At the pace that is asked for, an upload may take as long as it needs.
    let kept = stream::unfold(0, |sent| async move {
        tokio::time::sleep(Duration::from_secs(20)).await;
        (sent < 10).then(|| (Ok(data(20 * PACE as usize)), sent + 1))
    });
    let size = 10 * 20 * PACE;
    assert!(spool.receive(stream::iter([Ok(announced(size))]).chain(kept)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_fast_start_buys_no_time_to_idle() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path()).unwrap();
    let fast = stream::iter((0..8).map(|_| Ok(data(1 << 20))));
    let begun = stream::iter([Ok(announced(9 << 20))]).chain(fast);
    let began = Instant::now();
    let idles = spool.receive(begun.chain(stream::pending())).await;
    assert!(matches!(idles, Err(SpoolError::Slow)));
    assert!(began.elapsed() < 2 * PATIENCE, "{:?}", began.elapsed());
    assert_eq!(folders(dir.path()), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_before_its_turn() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path()).unwrap();
    let mut turns = Vec::new();
    for _ in 0..MOST {
        turns.push(spool.turn().await.ok().unwrap());
    }
    let read = std::cell::Cell::new(false);
    let messages = || {
        stream::once(async {
            read.set(true);
            Ok(announced(0))
        })
    };
    assert!(matches!(spool.receive(messages()).await, Err(SpoolError::Busy)));
    assert!(!read.get());
    turns.pop();
    assert!(spool.receive(messages()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn unfinished_submissions_are_limited_in_number_and_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Arc::new(Spool::open(dir.path()).unwrap());
    let begin = |size| {
        let announced = Announced { files: vec![("a".to_owned(), size)], ..Announced::default() };
        let spool = Arc::clone(&spool);
        async move { spool.begin(spool.turn().await?, announced).await }
    };
    let mut open = Vec::new();
    for _ in 0..MOST {
        open.push(begin(1).await.ok().unwrap());
    }
    assert!(matches!(begin(1).await, Err(SpoolError::Busy)));
    open.clear();
    for _ in 0..MOST_BYTES >> 30 {
        open.push(begin(1 << 30).await.ok().unwrap());
    }
    assert!(matches!(begin(1).await, Err(SpoolError::Busy)));
    open.pop();
    assert!(begin(1 << 30).await.is_ok());
    drop(open);
    assert_eq!(folders(dir.path()), 0);
}

#[tokio::test]
async fn what_is_no_submission_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path()).unwrap();
    for (messages, said) in [
        (vec![], "study is missing"),
        (vec![data(1)], "data is out of turn"),
        (vec![announced(3), data(2)], "data is missing"),
        (vec![announced(3), data(4)], "data is out of turn"),
        (vec![announced(3), announced(3)], "study is out of turn"),
        (vec![announced(2 << 30)], "size has length 2147483648, and at most 1073741824 is allowed"),
    ] {
        let result = spool.receive(stream::iter(messages.into_iter().map(Ok))).await;
        assert_eq!(result.err().unwrap().to_string(), said);
    }
    let broken = [Ok(announced(3)), Err(Status::cancelled("gone"))];
    assert!(matches!(spool.receive(stream::iter(broken)).await, Err(SpoolError::Broken(_))));
    assert_eq!(folders(dir.path()), 0);
}
