//! A buffer for the pieces of a body.

use std::io::{self, Read};

use bytes::Bytes;
use memmap2::MmapMut;

/// The length from which a body gets memory from the system, which is returned when the body is dropped. An
/// allocator keeps what a thread frees for that thread: a few consecutive requests of 16 MB left many times
/// their bytes behind.
const OWN_FROM: usize = 1 << 20;

/// Bytes, appended one piece after another.
#[derive(Debug)]
pub(super) enum Buffer {
    Heap(Vec<u8>),
    Own(Own),
}

/// Memory from the system. Its pages are allocated when they are written.
#[derive(Debug)]
pub(super) struct Own {
    map: MmapMut,
    used: usize,
}

impl AsRef<[u8]> for Own {
    fn as_ref(&self) -> &[u8] {
        self.map.get(..self.used).unwrap_or_default()
    }
}

impl Buffer {
    /// A buffer for this many bytes.
    ///
    /// # Errors
    /// The system's error if it has no memory.
    pub(super) fn with_capacity(bytes: usize) -> io::Result<Self> {
        if bytes < OWN_FROM {
            return Ok(Self::Heap(Vec::with_capacity(bytes)));
        }
        Ok(Self::Own(Own { map: MmapMut::map_anon(bytes)?, used: 0 }))
    }

    /// Appends these bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] if they do not fit.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Heap(heap) => heap.extend_from_slice(bytes),
            Self::Own(Own { map, used }) => {
                let end = used.saturating_add(bytes.len());
                map.get_mut(*used..end).ok_or(io::ErrorKind::StorageFull)?.copy_from_slice(bytes);
                *used = end;
            }
        }
        Ok(())
    }

    /// Appends bytes of `from` until it ends or the buffer is full. Returns the next byte if `from` has not
    /// ended.
    ///
    /// # Errors
    /// Errors of `from`.
    pub(super) fn fill(&mut self, mut from: impl Read) -> io::Result<Option<u8>> {
        match self {
            Self::Heap(heap) => {
                let room = heap.capacity() - heap.len();
                from.by_ref().take(room as u64).read_to_end(heap)?;
            }
            Self::Own(Own { map, used }) => {
                while let Some(room) = map.get_mut(*used..).filter(|room| !room.is_empty()) {
                    match from.read(room) {
                        Ok(0) => return Ok(None),
                        Ok(read) => *used += read,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        let mut next = [0];
        from.read_exact(&mut next).map(|()| Some(next[0])).or_else(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Ok(None),
            _ => Err(error),
        })
    }

    pub(super) fn freeze(self) -> Bytes {
        match self {
            Self::Heap(heap) => heap.into(),
            Self::Own(own) => Bytes::from_owner(own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_holds_what_is_appended_on_the_heap_or_in_a_map() {
        for room in [0, 10, OWN_FROM - 1, OWN_FROM, OWN_FROM + 1] {
            let text: Vec<u8> = (0..room).map(|at| (at % 251) as u8).collect();
            let mut appended = Buffer::with_capacity(room).unwrap();
            for piece in text.chunks(100_000) {
                appended.append(piece).unwrap();
            }
            assert_eq!(appended.freeze(), text);
            let mut filled = Buffer::with_capacity(room).unwrap();
            assert_eq!(filled.fill(text.as_slice()).unwrap(), None, "{room} bytes came to their end");
            assert_eq!(filled.freeze(), text);
        }
    }

    #[test]
    fn a_byte_that_does_not_fit_is_returned() {
        for room in [10, OWN_FROM] {
            let mut text = vec![7; room + 1];
            text[room] = 8;
            let mut filled = Buffer::with_capacity(room).unwrap();
            assert_eq!(filled.fill(text.as_slice()).unwrap(), Some(8));
            assert_eq!(filled.freeze(), text[..room]);
        }
        let mut own = Buffer::with_capacity(OWN_FROM).unwrap();
        own.append(&[7; OWN_FROM]).unwrap();
        assert_eq!(own.append(&[7]).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(own.freeze(), [7; OWN_FROM].as_slice());
    }
}
