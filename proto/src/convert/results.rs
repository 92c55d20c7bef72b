//! A sealed dataset on its way to a client, who writes files where the names say.

use bytes::Bytes;

use study::folder;

use super::{Fault, Invalid, chunk, path};
use crate::v1;

/// The next bytes of a file of the dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultPart {
    /// One of the files that a dataset may have.
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
        if !folder::is_file(&name) {
            return Err(Invalid::new("name", Fault::NoDatasetFile));
        }
        Ok(Self { name, data: chunk("data", message.data)?, last: message.last })
    }
}

impl From<ResultPart> for v1::ResultChunk {
    fn from(ResultPart { name, data, last }: ResultPart) -> Self {
        Self { name, data, last }
    }
}
