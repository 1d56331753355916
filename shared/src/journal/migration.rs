//! State migrations: resources of the base move to new positions, and others are inserted.

use std::collections::{HashMap, HashSet};

use super::entry::{Placement, StateMigration};
use super::replayer::Replayer;
use crate::domain::integrity;
use crate::domain::resource::Resource;
use crate::domain::urn::Urn;

impl<'a> Replayer<'a> {
    /// Applies a state migration completely or not at all.
    ///
    /// # Errors
    /// A description, if it cannot be applied or the result breaks an integrity rule. Then it has no effect.
    pub(super) fn migrate(&mut self, migration: StateMigration<'a>) -> Result<(), String> {
        if !self.base.pending_operations.is_empty() {
            return Err("the base has pending operations, which rule out a state migration".to_owned());
        }
        let open = self.changes.open.iter().find(|(_, operation)| operation.is_some());
        if let Some((operation_id, _)) = open {
            return Err(format!("operation {operation_id} is open, which rules out a state migration"));
        }
        let places = migration.places()?;
        let count = self.base.resources.len();
        if let Some(index) = places.keys().copied().filter(|index| *index >= count).min() {
            return Err(format!("the state migration keeps resource {index} of the base, which has {count}"));
        }
        self.check_inserted(&migration.states)?;

        let mut staged = self.clone();
        staged.patch_base(&migration, &places)?;
        staged.patch_new(&migration)?;
        staged.lay_out(migration, &places);

        let built = staged.build();
        if let Some(reason) = built.unresolved_aliases {
            return Err(format!("the state migration leads to a state in which {reason}"));
        }
        integrity::check(&built.deployment).map_err(|complaint| {
            format!("the state migration leads to a state that breaks a rule: {complaint}")
        })?;
        *self = staged;
        Ok(())
    }

    fn check_inserted(&self, states: &[Resource<'a>]) -> Result<(), String> {
        let mut urns = HashSet::new();
        for state in states {
            let urn = state.urn.as_ref();
            let complaint = if Urn::parse(urn).is_none_or(|parts| parts.own_type() != state.own_type) {
                "whose URN is not one of its type"
            } else if state.delete {
                "that is marked for deletion"
            } else if !state.view_of.is_empty() {
                "that is a view"
            } else if state.custom && state.id.is_empty() {
                "that has no ID"
            } else if !state.extension_ref.is_empty()
                && !self.base.extensions.contains(&state.extension_ref)
                && !self.changes.extensions.contains(&state.extension_ref)
            {
                "whose extension is not known"
            } else if !urns.insert(urn) {
                "twice"
            } else {
                continue;
            };
            return Err(format!("the state migration inserts a resource {complaint}: {urn}"));
        }
        Ok(())
    }

    fn patch_base(
        &mut self,
        migration: &StateMigration<'a>,
        places: &HashMap<usize, usize>,
    ) -> Result<(), String> {
        let mut patched = HashSet::new();
        for (index, state) in &migration.base_patches {
            let place = usize::try_from(*index).ok().filter(|index| places.contains_key(index));
            let old = place.and_then(|place| self.base.resources.get_mut(place));
            let (Some(place), Some(old)) = (place, old) else {
                return Err(format!(
                    "the state migration patches resource {index} of the base, which it drops"
                ));
            };
            if !patched.insert(place) {
                return Err(format!("the state migration patches resource {index} of the base twice"));
            }
            *old = state.clone();
            self.changes.base_replaced.remove(&place);
        }
        Ok(())
    }

    fn patch_new(&mut self, migration: &StateMigration<'a>) -> Result<(), String> {
        let mut patched = HashSet::new();
        for (operation, state) in &migration.new_patches {
            let position = self.changes.fresh_by_operation.get(operation).copied();
            let (Some(position), false) = (position, self.changes.fresh_removed.contains(operation)) else {
                return Err(format!(
                    "the state migration patches what operation {operation} made, which is nothing"
                ));
            };
            if !patched.insert(*operation) {
                return Err(format!("the state migration patches what operation {operation} made twice"));
            }
            let state = self.changes.keep(state.clone());
            if let Some(fresh) = self.changes.fresh.get_mut(position) {
                *fresh = state;
            }
        }
        Ok(())
    }

    /// Builds the new base and moves the marks of the old one along with its resources.
    fn lay_out(&mut self, migration: StateMigration<'a>, places: &HashMap<usize, usize>) {
        let mut old: Vec<Option<Resource<'a>>> =
            std::mem::take(&mut self.base.resources).into_iter().map(Some).collect();
        let mut inserted: Vec<Option<Resource<'a>>> = migration.states.into_iter().map(Some).collect();
        let take = |from: &mut Vec<Option<Resource<'a>>>, index: i64| {
            usize::try_from(index).ok().and_then(|index| from.get_mut(index)).and_then(Option::take)
        };
        self.base.resources = migration
            .layout
            .into_iter()
            .filter_map(|Placement { base_index, state_index }| match (base_index, state_index) {
                (Some(index), _) => take(&mut old, index),
                (None, Some(index)) => take(&mut inserted, index),
                (None, None) => None,
            })
            .collect();

        let moved =
            |set: &HashSet<usize>| set.iter().filter_map(|index| places.get(index).copied()).collect();
        let changes = &mut self.changes;
        changes.base_removed = moved(&changes.base_removed);
        changes.base_to_delete = moved(&changes.base_to_delete);
        changes.base_pending_replacement = moved(&changes.base_pending_replacement);
        let replaced = std::mem::take(&mut changes.base_replaced).into_iter();
        changes.base_replaced =
            replaced.filter_map(|(index, state)| Some((*places.get(&index)?, state))).collect();
    }
}

impl StateMigration<'_> {
    /// Maps the index of each remaining resource in the base to its index in the layout. Every inserted state has exactly one
    /// position.
    ///
    /// # Errors
    /// A description, if the layout is invalid for any base.
    pub(super) fn places(&self) -> Result<HashMap<usize, usize>, String> {
        let state_count = self.states.len();
        if state_count == 0 {
            return Err("the state migration inserts no resource".to_owned());
        }
        let mut places = HashMap::new();
        let mut placed = HashSet::new();
        for (position, placement) in self.layout.iter().enumerate() {
            let sound = match (placement.base_index, placement.state_index) {
                (Some(index), None) => {
                    usize::try_from(index).is_ok_and(|index| places.insert(index, position).is_none())
                }
                (None, Some(index)) => {
                    usize::try_from(index).is_ok_and(|index| index < state_count && placed.insert(index))
                }
                _ => false,
            };
            if !sound {
                return Err(format!(
                    "position {position} of the state migration's layout must name either a resource of the base or \
                     one of the {state_count} inserted, and one that no other position names"
                ));
            }
        }
        if placed.len() < state_count {
            return Err(format!(
                "the state migration places {} of its {state_count} resources",
                placed.len()
            ));
        }
        Ok(places)
    }
}
