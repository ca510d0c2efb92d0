//! Reads epochs back: entry after entry, cut off where they are torn.

use std::path::PathBuf;

use agentsvc_systems::replay::Entry;

use super::Error;
use super::folder::EpochFolder;
use super::segment::{Frame, SegmentReader};

/// How an epoch ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With the newest step that was written.
    Clean,
    /// In the middle of a frame: the process or the machine died.
    Torn,
    /// Inputs are missing from there on.
    Gap(String),
}

/// The entries of one epoch in order.
pub struct Entries {
    /// Segments that are not read yet, the next one last.
    segments: Vec<PathBuf>,
    reader: Option<(PathBuf, SegmentReader)>,
    bytes: Vec<u8>,
    end: Option<End>,
}

impl Entries {
    /// Those of `folder`.
    pub fn of(folder: &EpochFolder) -> Result<Self, Error> {
        let segments = folder.segments()?.into_iter().rev().map(|(_, path)| path).collect();
        Ok(Self { segments, reader: None, bytes: Vec::new(), end: None })
    }

    /// The next entry.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Damaged`] when an entry is whole but cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>, Error> {
        if !self.advance()? {
            return Ok(None);
        }
        let path = self.reader.as_ref().map(|(path, _)| path.clone()).unwrap_or_default();
        let entry = Entry::read(&self.bytes).map_err(|error| Error::Damaged { path, reason: error.to_string() })?;
        Ok(Some(entry))
    }

    /// Reads the bytes of the next entry. False at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        while self.end.is_none() {
            if self.reader.is_none() {
                let Some(path) = self.segments.pop() else {
                    self.end = Some(End::Clean);
                    break;
                };
                let reader = SegmentReader::open(&path).map_err(Error::io(&path))?;
                self.reader = Some((path, reader));
            }
            let Some((path, reader)) = &mut self.reader else { break };
            match reader.next_frame().map_err(Error::io(path))? {
                Some(Frame::Entry(bytes)) => {
                    self.bytes = bytes;
                    return Ok(true);
                }
                Some(Frame::Gap(why)) => self.end = Some(End::Gap(why)),
                // Behind a torn end nothing is known, whatever follows.
                None if reader.is_torn() => self.end = Some(End::Torn),
                None => self.reader = None,
            }
        }
        Ok(false)
    }

    /// How it ended, once [`Entries::next_entry`] has given `None`.
    pub const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }
}

/// The newest numbered step of an epoch; `after` when it has none.
pub fn newest(folder: &EpochFolder) -> Result<u64, Error> {
    // The last segment may have lost all that was in it with the power.
    for (_, path) in folder.segments()?.into_iter().rev() {
        let mut entries = Entries { segments: vec![path], reader: None, bytes: Vec::new(), end: None };
        let mut newest: Option<u64> = None;
        while let Some(entry) = entries.next_entry()? {
            newest = newest.max(Some(entry.step.number));
        }
        if let Some(newest) = newest {
            return Ok(newest.max(folder.after));
        }
    }
    Ok(folder.after)
}
