//! A study and its files, in pieces that fit in messages.

use bytes::Bytes;

use super::{Fault, Invalid, chunk, name, path, within};
use crate::limits::{MAX_CHUNK_BYTES, MAX_FILE_BYTES, MAX_FILES, MAX_TEXT_BYTES};
use crate::v1;
use crate::v1::submit_request::Message;

/// A study as it was handed in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// The name of the study file.
    pub file_name: String,
    /// The study file.
    pub text: String,
    /// The files that it names: path and content.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A study that is being handed in; the content of its files follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// The name of the study file.
    pub file_name: String,
    /// The study file.
    pub text: String,
    /// The files that it names: path and bytes.
    pub files: Vec<(String, u64)>,
}

/// What a piece of a submission is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The beginning.
    Study(Announced),
    /// The next bytes of a file.
    Data {
        /// The file, counted from 0.
        file: usize,
        /// The bytes.
        data: Bytes,
    },
}

/// A submission of which some pieces have come. The pieces themselves are for the caller to keep.
#[derive(Debug, Default)]
pub struct Assembly {
    /// Bytes that are still to come, by file.
    missing: Option<Vec<u64>>,
    /// The first file that may not be complete.
    current: usize,
}

impl Assembly {
    /// Takes the next piece, and says what it is.
    pub fn push(&mut self, piece: v1::SubmitRequest) -> Result<Piece, Invalid> {
        match piece.message {
            None => Err(Invalid::new("message", Fault::Missing)),
            Some(Message::Study(study)) => self.begin(study).map(Piece::Study),
            Some(Message::Data(data)) => {
                let data = chunk("data", data)?;
                Ok(Piece::Data { file: self.place(data.len() as u64)?, data })
            }
        }
    }

    /// Checks that every file is complete.
    pub fn finish(self) -> Result<(), Invalid> {
        let missing = self.missing.ok_or(Invalid::new("study", Fault::Missing))?;
        if missing.iter().all(|&bytes| bytes == 0) {
            Ok(())
        } else {
            Err(Invalid::new("data", Fault::Missing))
        }
    }

    fn begin(&mut self, study: v1::SubmittedStudy) -> Result<Announced, Invalid> {
        if self.missing.is_some() {
            return Err(Invalid::new("study", Fault::OutOfTurn));
        }
        within("text", study.text.len(), MAX_TEXT_BYTES)?;
        within("files", study.files.len(), MAX_FILES)?;
        let sizes = study.files.iter().map(|file| file.size);
        let length = sizes.fold(0, u64::saturating_add);
        if length > MAX_FILE_BYTES {
            let fault = Fault::TooLong { length, most: MAX_FILE_BYTES };
            return Err(Invalid::new("size", fault));
        }
        let files = study.files.into_iter().map(|file| Ok((path("path", file.path)?, file.size)));
        let announced = Announced {
            file_name: name("file_name", study.file_name)?,
            text: study.text,
            files: files.collect::<Result<_, _>>()?,
        };
        self.missing = Some(announced.files.iter().map(|(_, size)| *size).collect());
        Ok(announced)
    }

    /// The file that the next bytes belong to.
    fn place(&mut self, length: u64) -> Result<usize, Invalid> {
        let out_of_turn = || Invalid::new("data", Fault::OutOfTurn);
        let missing = self.missing.as_mut().ok_or_else(out_of_turn)?;
        while missing.get(self.current) == Some(&0) {
            self.current += 1;
        }
        let left = missing.get_mut(self.current).ok_or_else(out_of_turn)?;
        *left = left.checked_sub(length).ok_or_else(out_of_turn)?;
        Ok(self.current)
    }
}

/// The messages that hand in a submission.
pub fn pieces(submission: Submission) -> impl Iterator<Item = v1::SubmitRequest> {
    let Submission { file_name, text, files } = submission;
    let sizes = files.iter().map(|(path, content)| v1::SubmittedFile {
        path: path.clone(),
        size: content.len() as u64,
    });
    let study = v1::SubmittedStudy { file_name, text, files: sizes.collect() };
    let chunks = files.into_iter().flat_map(|(_, content)| {
        let content = Bytes::from(content);
        let starts = (0..content.len()).step_by(MAX_CHUNK_BYTES);
        starts.map(move |start| content.slice(start..content.len().min(start + MAX_CHUNK_BYTES)))
    });
    let messages = std::iter::once(Message::Study(study)).chain(chunks.map(Message::Data));
    messages.map(|message| v1::SubmitRequest { message: Some(message) })
}
