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

/// A submission of which some pieces have come.
#[derive(Debug, Default)]
pub struct Assembly {
    submission: Option<Submission>,
    sizes: Vec<u64>,
    /// The first file that may not be complete.
    current: usize,
}

impl Assembly {
    /// Adds the next piece. Memory follows what came, not what was announced.
    pub fn push(&mut self, piece: v1::SubmitRequest) -> Result<(), Invalid> {
        match piece.message {
            None => Err(Invalid::new("message", Fault::Missing)),
            Some(Message::Study(study)) => self.begin(study),
            Some(Message::Data(data)) => self.extend(&chunk("data", data)?),
        }
    }

    /// The whole, once every file is complete.
    pub fn finish(self) -> Result<Submission, Invalid> {
        let submission = self.submission.ok_or(Invalid::new("study", Fault::Missing))?;
        let lengths = submission.files.iter().map(|(_, content)| content.len() as u64);
        if lengths.eq(self.sizes) {
            Ok(submission)
        } else {
            Err(Invalid::new("data", Fault::Missing))
        }
    }

    fn begin(&mut self, study: v1::SubmittedStudy) -> Result<(), Invalid> {
        if self.submission.is_some() {
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
        self.sizes = study.files.iter().map(|file| file.size).collect();
        let files = study.files.into_iter().map(|file| Ok((path("path", file.path)?, Vec::new())));
        self.submission = Some(Submission {
            file_name: name("file_name", study.file_name)?,
            text: study.text,
            files: files.collect::<Result<_, _>>()?,
        });
        Ok(())
    }

    fn extend(&mut self, data: &[u8]) -> Result<(), Invalid> {
        let out_of_turn = || Invalid::new("data", Fault::OutOfTurn);
        let files = &mut self.submission.as_mut().ok_or_else(out_of_turn)?.files;
        while let Some((_, content)) = files.get_mut(self.current) {
            let left = self.sizes[self.current] - content.len() as u64;
            if left == 0 {
                self.current += 1;
            } else if data.len() as u64 <= left {
                content.extend_from_slice(data);
                return Ok(());
            } else {
                break;
            }
        }
        Err(out_of_turn())
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
