//! A sealed dataset on its way to a client, who writes files where the names say.

use bytes::Bytes;

use super::{Fault, Invalid, chunk, path};
use crate::v1;

/// The next bytes of a file of the dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultPart {
    /// A plain relative path with slashes: joined to a folder, it stays within.
    pub name: String,
    /// The bytes.
    pub data: Bytes,
    /// The file ends here.
    pub last: bool,
}

impl TryFrom<v1::ResultChunk> for ResultPart {
    type Error = Invalid;

    fn try_from(message: v1::ResultChunk) -> Result<Self, Invalid> {
        let name = path("name", message.name)?;
        let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', ':']);
        if !name.split('/').all(plain) {
            return Err(Invalid::new("name", Fault::NotRelative));
        }
        Ok(Self { name, data: chunk("data", message.data)?, last: message.last })
    }
}

impl From<ResultPart> for v1::ResultChunk {
    fn from(ResultPart { name, data, last }: ResultPart) -> Self {
        Self { name, data, last }
    }
}
