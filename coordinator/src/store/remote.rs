//! An object store that speaks S3, as the writer and the reader of a store use it: calls block.
//!
//! Requests run on threads of their own, so that any thread may wait for them, whatever runtime it
//! belongs to. Names and credentials come from the AWS_* variables.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    Error as Failure, ObjectStore, ObjectStoreExt, PutMode, PutOptions, RetryConfig,
};
use tokio::runtime::{Builder, Runtime};

use super::dataset::transfer;
use super::disk::{Disk, Log};
use super::error::{At, Error};
use super::location::Bucket;

/// A request is tried again for so long.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A place in an object store.
pub(super) struct Remote {
    at: Bucket,
    store: Arc<AmazonS3>,
    runtime: Option<Runtime>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.at)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // A runtime may not be waited for where it could block another.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The client of a bucket; nothing is asked of it yet.
pub(super) fn client(at: &Bucket, patience: Duration) -> Result<AmazonS3, Error> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(&at.bucket);
    for (key, value) in at.settings() {
        let key = key.parse().map_err(failed).at("use the setting of", &at.name())?;
        builder = builder.with_config(key, value);
    }
    let retry = RetryConfig { retry_timeout: patience, ..RetryConfig::default() };
    builder.with_retry(retry).build().map_err(|error| Error::Object {
        action: "use",
        object: at.to_string(),
        problem: words(at, &error),
    })
}

/// What is wrong, and what to do about it.
pub(super) fn words(at: &Bucket, error: &Failure) -> String {
    let (mut text, mut cause) = (error.to_string(), error as &dyn std::error::Error);
    while let Some(deeper) = cause.source() {
        cause = deeper;
        text += &cause.to_string();
    }
    let has = |mark: &str| text.contains(mark);
    let denied =
        matches!(error, Failure::PermissionDenied { .. } | Failure::Unauthenticated { .. });
    // Where nothing else has credentials, the service for virtual machines of Amazon's is asked.
    if has("169.254.") || has("Missing AccessKeyId") || has("Missing SecretAccessKey") {
        "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN where they \
         are temporary), or AWS_SKIP_SIGNATURE=true for a public bucket; ~/.aws is not read"
            .to_owned()
    } else if has("NoSuchBucket") {
        format!(
            "there is no bucket {:?}: check its name and AWS_ENDPOINT_URL, or make it",
            at.bucket
        )
    } else if denied {
        "access is denied: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, and what the bucket's policy \
         allows them"
            .to_owned()
    } else if has("scheme is not allowed") {
        "its server has no TLS: set AWS_ALLOW_HTTP=true if the network is trusted".to_owned()
    } else if ["(Connect)", "Connection refused", "dns error", "timed out"]
        .iter()
        .any(|mark| has(mark))
    {
        format!(
            "its server does not answer ({cause}): check AWS_ENDPOINT_URL, and that this machine reaches it"
        )
    } else {
        error.to_string()
    }
}

/// What the rest of the store understands.
pub(super) fn failed(error: Failure) -> io::Error {
    let kind = match error {
        Failure::NotFound { .. } => io::ErrorKind::NotFound,
        Failure::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        Failure::PermissionDenied { .. } | Failure::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl Remote {
    pub(super) fn new(at: &Bucket) -> Result<Self, Error> {
        let store = Arc::new(client(at, PATIENCE)?);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("object-store")
            .enable_all()
            .build()
            .at("start a thread for", &at.name())?;
        Ok(Self { at: at.clone(), store, runtime: Some(runtime) })
    }

    /// What errors call an object.
    pub(super) fn name(&self, object: &str) -> PathBuf {
        self.at.join(object).name()
    }

    fn path(&self, object: &str) -> Path {
        Path::from(self.at.join(object).prefix)
    }

    fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> io::Result<T> {
        self.finish(async { work.await.map_err(failed) })
    }

    fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        let (reply, answer) = mpsc::sync_channel(1);
        let runtime = self.runtime.as_ref().expect("it is there until this is dropped");
        runtime.spawn(async move {
            // Whoever waits is there until the answer is.
            let _ = reply.send(work.await);
        });
        let ended = |_| io::Error::other("the request was given up");
        answer.recv().map_err(ended)?
    }

    /// Creates an object, once and for all. One that is there already is the same one, of a request
    /// whose answer was lost; another is an error.
    pub(super) fn create(&self, object: &str, bytes: &Bytes) -> io::Result<()> {
        let (store, path, payload) = (Arc::clone(&self.store), self.path(object), bytes.clone());
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = async move { store.put_opts(&path, payload.into(), options).await };
        match self.wait(put) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if self.get(object)? == *bytes { Ok(()) } else { Err(error) }
            }
            result => result.map(|_| ()),
        }
    }

    /// Puts a file, piece by piece, in place of what the object was.
    pub(super) fn upload(&self, object: &str, from: &FilePath) -> io::Result<()> {
        let (store, path) = (Arc::<AmazonS3>::clone(&self.store), self.path(object));
        let from = from.to_path_buf();
        let store: Arc<dyn ObjectStore> = store;
        self.finish(async move { transfer::upload(&store, path, &from).await.map(drop) })
    }

    /// All of an object.
    pub(super) fn get(&self, object: &str) -> io::Result<Bytes> {
        let (store, path) = (Arc::clone(&self.store), self.path(object));
        self.wait(async move { store.get(&path).await?.bytes().await })
    }

    /// The names and sizes of the objects in a folder.
    pub(super) fn list(&self, folder: &str) -> io::Result<Vec<(String, u64)>> {
        let (store, path) = (Arc::clone(&self.store), self.path(folder));
        let objects =
            self.wait(async move { store.list(Some(&path)).try_collect::<Vec<_>>().await })?;
        let named = |object: object_store::ObjectMeta| {
            object.location.filename().map(|name| (name.to_owned(), object.size))
        };
        Ok(objects.into_iter().filter_map(named).collect())
    }

    /// Deletes objects; one that is not there is as good.
    pub(super) fn delete(&self, objects: &[String]) -> io::Result<()> {
        let store = Arc::clone(&self.store);
        let paths: Vec<Path> = objects.iter().map(|object| self.path(object)).collect();
        self.wait(async move {
            let paths = stream::iter(paths.into_iter().map(Ok)).boxed();
            let deleted = store.delete_stream(paths).filter_map(|deleted| async move {
                deleted.err().filter(|error| !matches!(error, Failure::NotFound { .. }))
            });
            let failed = std::pin::pin!(deleted).next().await;
            failed.map_or(Ok(()), Err)
        })
    }
}

/// Segments as objects: each is put whole, by its first sync.
pub(super) struct Objects(pub(super) Arc<Remote>);

impl Disk for Objects {
    fn create(&mut self, path: &FilePath) -> io::Result<Box<dyn Log>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (remote, name) = (Arc::clone(&self.0), format!("segments/{name}"));
        Ok(Box::new(Object { remote, name, bytes: Vec::new() }))
    }

    fn is_whole(&self) -> bool {
        true
    }
}

struct Object {
    remote: Arc<Remote>,
    name: String,
    bytes: Vec<u8>,
}

impl Log for Object {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.remote.create(&self.name, &std::mem::take(&mut self.bytes).into())
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        self.bytes.truncate(length as usize);
        Ok(())
    }
}
