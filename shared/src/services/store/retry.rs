//! Read, decide, write on a condition, and repeat all of it after a conflict.

use crate::services::Error;

/// The maximum number of attempts at one change before a use case reports a conflict.
const CONFLICT_ATTEMPTS_MAX: usize = 16;

/// The attempts of a use case at one change.
///
/// ```text
/// let mut attempts = Attempts::at("the stack");
/// loop {
///     attempts.begin()?;
///     let head = store::read(ctx, &key).await?;
///     let next = decide(&head)?;
///     if store::commit(ctx, vec![store::put(ctx, key, head.unchanged(), &next)]).await?.is_ok() {
///         return Ok(next);
///     }
/// }
/// ```
///
/// This counts instead of taking a closure: a use case leaves its loop by `return`, `?` and `continue`, and may keep what
/// it stored in one attempt for the next.
pub(crate) struct Attempts {
    what: &'static str,
    begun: usize,
}

impl Attempts {
    /// `what` names the contended item in the error after the last attempt.
    pub(crate) fn at(what: &'static str) -> Self {
        Self { what, begun: 0 }
    }

    /// Begins an attempt, and returns the number of earlier attempts.
    ///
    /// # Errors
    /// [`Error::Contended`] after [`CONFLICT_ATTEMPTS_MAX`].
    pub(crate) fn begin(&mut self) -> Result<usize, Error> {
        if self.begun == CONFLICT_ATTEMPTS_MAX {
            return Err(Error::Contended(self.what));
        }
        self.begun += 1;
        Ok(self.begun - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_end_with_the_conflict() {
        let mut attempts = Attempts::at("the stack");
        for before in 0..CONFLICT_ATTEMPTS_MAX {
            assert_eq!(attempts.begin().unwrap(), before);
        }
        assert!(matches!(attempts.begin(), Err(Error::Contended("the stack"))));
    }
}
