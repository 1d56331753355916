//! Tracks the bytes that each owner holds, and the queue of requests that wait for more.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::Inner;

/// The largest new request while the request with the turn waits for others to end.
const SMALL: usize = 16 << 20;

/// Requests up to this size, or a thousandth of a small account, need no share, so that an owner whose large
/// requests use all of it can still renew a lease. The number of concurrent requests of a token is limited.
const TINY: usize = 64 << 10;

/// What is held and waited for. One lock protects all of it.
pub(super) struct Books {
    bytes_max: usize,
    used: usize,
    most: usize,
    by_owner: HashMap<u64, Owned>,
    /// The request that has the turn.
    turn: Option<u64>,
    /// The owner who had it last.
    last: Option<u64>,
    waiting: VecDeque<Waiting>,
    last_id: u64,
}

/// The bytes of one owner.
#[derive(Default, Clone, Copy)]
struct Owned {
    all: usize,
    /// Of these, answers that are being sent.
    answers: usize,
}

/// A position in the queue.
pub(super) struct Waiting {
    id: u64,
    bytes: usize,
    part: Arc<Inner>,
    /// Dropping it without an answer refuses the request.
    pub(super) granted: oneshot::Sender<()>,
}

impl Waiting {
    fn request(&self) -> u64 {
        self.part.request.id
    }

    fn holds(&self) -> bool {
        self.part.request.held() > 0
    }
}

impl Books {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            used: 0,
            most: 0,
            by_owner: HashMap::new(),
            turn: None,
            last: None,
            waiting: VecDeque::new(),
            last_id: 0,
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    pub(super) fn take_most(&mut self) -> usize {
        std::mem::replace(&mut self.most, self.used)
    }

    #[cfg(test)]
    pub(super) fn in_line(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// The most that one request counts as, and the most that all hold while the turn opens the free part.
    fn one_max(&self) -> usize {
        self.bytes_max - self.bytes_max / 8
    }

    /// The bytes that these add to the request's count.
    fn counted(&self, part: &Inner, bytes: usize) -> usize {
        let held = part.request.held();
        held.saturating_add(bytes).min(self.one_max()).saturating_sub(held)
    }

    fn owned(&self, owner: u64) -> Owned {
        self.by_owner.get(&owner).copied().unwrap_or_default()
    }

    /// Adds these bytes if there is room for them.
    pub(super) fn grant(&mut self, part: &Inner, bytes: usize) -> bool {
        let bytes = self.counted(part, bytes);
        let is_granted = bytes == 0
            || self.is_tiny(part, bytes)
            || self.is_within_share(part, bytes)
            || self.is_within_turn(part, bytes);
        if is_granted {
            part.add(self, bytes);
        }
        is_granted
    }

    fn is_tiny(&self, part: &Inner, bytes: usize) -> bool {
        part.request.held() + bytes <= TINY.min(self.bytes_max / 1024)
            && self.used + bytes <= self.bytes_max - self.bytes_max / 16
    }

    fn is_within_share(&self, part: &Inner, bytes: usize) -> bool {
        let free = self.bytes_max.saturating_sub(self.used);
        let is_held_back = part.request.held() == 0 && bytes > SMALL && self.turn_waits();
        !is_held_back && self.owned(part.request.owner).all + bytes <= free.saturating_sub(bytes)
    }

    fn is_within_turn(&self, part: &Inner, bytes: usize) -> bool {
        self.has_turn(part.request.id)
            && self.may_have_turn(part, bytes)
            && self.used + bytes <= self.one_max()
    }

    /// Whether the owner's answers leave room for this: slowly read answers must not fill the account by one
    /// turn after another.
    fn may_have_turn(&self, part: &Inner, bytes: usize) -> bool {
        let answers = self.owned(part.request.owner).answers;
        answers + part.request.held() + bytes <= self.bytes_max / 2 || answers <= self.bytes_max / 8
    }

    fn turn_waits(&self) -> bool {
        self.turn.is_some_and(|turn| self.waiting.iter().any(|it| it.request() == turn))
    }

    pub(super) fn has_turn(&self, request: u64) -> bool {
        self.turn == Some(request)
    }

    /// Ends the turn; false if the request did not have it.
    pub(super) fn end_turn(&mut self, request: u64) -> bool {
        let had = self.has_turn(request);
        if had {
            self.turn = None;
        }
        had
    }

    pub(super) fn add(&mut self, owner: u64, bytes: usize, of_answer: bool) {
        self.used += bytes;
        self.most = self.most.max(self.used);
        let owned = self.by_owner.entry(owner).or_default();
        owned.all += bytes;
        owned.answers += if of_answer { bytes } else { 0 };
    }

    pub(super) fn give_back(&mut self, owner: u64, bytes: usize, of_answer: bool) {
        self.used -= bytes;
        if let Some(owned) = self.by_owner.get_mut(&owner) {
            owned.all -= bytes;
            owned.answers -= if of_answer { bytes } else { 0 };
            if owned.all == 0 {
                self.by_owner.remove(&owner);
            }
        }
    }

    /// From now on the held bytes count as an answer.
    pub(super) fn answer(&mut self, owner: u64, bytes: usize) {
        if let Some(owned) = self.by_owner.get_mut(&owner) {
            owned.answers += bytes;
        }
    }

    /// Joins the queue.
    pub(super) fn wait(&mut self, part: Arc<Inner>, bytes: usize, granted: oneshot::Sender<()>) -> u64 {
        let id = self.next_id();
        self.waiting.push_back(Waiting { id, bytes, part, granted });
        id
    }

    /// Leaves the queue, and gives up a turn that has granted nothing yet.
    pub(super) fn leave(&mut self, id: u64) -> Option<Waiting> {
        let index = self.waiting.iter().position(|it| it.id == id)?;
        let left = self.waiting.remove(index)?;
        if !left.holds() {
            self.end_turn(left.request());
        }
        Some(left)
    }

    /// The queued requests that get what they wait for, and those that are refused.
    pub(super) fn let_in(&mut self) -> (Vec<Waiting>, Vec<Waiting>) {
        let (mut granted, mut refused) = (Vec::new(), Vec::new());
        loop {
            let mut index = 0;
            while let Some(waiting) = self.waiting.get(index) {
                let (part, bytes) = (Arc::clone(&waiting.part), waiting.bytes);
                if self.grant(&part, bytes) {
                    granted.extend(self.waiting.remove(index));
                } else {
                    index += 1;
                }
            }
            if self.turn.is_none() && self.pass_turn() {
                continue;
            }
            let Some(in_the_way) = self.in_the_way() else { return (granted, refused) };
            refused.extend(self.waiting.remove(in_the_way));
        }
    }

    /// Gives the turn to the first queued request that only the turn can help: one that holds memory, or needs
    /// more than any share. Owners take turns.
    fn pass_turn(&mut self) -> bool {
        let needs_turn = |it: &&Waiting| {
            let bytes = self.counted(&it.part, it.bytes);
            (it.holds() || bytes > self.bytes_max / 2) && self.may_have_turn(&it.part, bytes)
        };
        let of_others = |it: &&Waiting| Some(it.part.request.owner) != self.last;
        let next = self.waiting.iter().filter(needs_turn).find(of_others);
        let next = next.or_else(|| self.waiting.iter().find(needs_turn));
        let Some((request, owner)) = next.map(|it| (it.request(), it.part.request.owner)) else {
            return false;
        };
        (self.turn, self.last) = (Some(request), Some(owner));
        true
    }

    /// The newest queued request, if the queue leaves too few bytes for the request with the turn to end:
    /// that one is refused.
    fn in_the_way(&self) -> Option<usize> {
        let first = self.waiting.iter().find(|it| self.has_turn(it.request()))?;
        let needed = first.part.request.held() + self.counted(&first.part, first.bytes);
        let mut others = HashMap::new();
        for it in self.waiting.iter().filter(|it| it.holds() && !self.has_turn(it.request())) {
            others.insert(it.request(), it.part.request.held());
        }
        let held: usize = others.values().sum();
        if held + needed <= self.one_max() {
            return None;
        }
        self.waiting.iter().rposition(|it| it.holds() && !self.has_turn(it.request()))
    }
}
