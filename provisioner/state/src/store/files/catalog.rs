//! Whole stacks in a folder: list, history, tags, remove.

use std::io;
use std::path::Path;

use bridge::fs::{FileError, MAX_DOCUMENT_BYTES, read_if_exists};

use super::super::catalog::{Backups, Tags};
use super::super::error::StoreError;
use super::super::layout::{self, Layout};
use super::super::listing::ListedNames;
use super::super::lock::StackLock;
use super::super::reference::StackReference;
use super::super::revision::Expected;
use super::super::tags;
use super::folder::{Folder, list};
use super::renames::remove_if_empty;

impl Folder {
    pub(super) fn list(&self) -> Result<Vec<StackReference>, StoreError> {
        let names = |folder: &Path| -> Result<Vec<String>, StoreError> {
            let files = list(folder)?.into_iter().filter(|entry| !entry.is_folder);
            Ok(files.filter_map(|entry| layout::stack_name_of_file(&entry.name).map(str::to_owned)).collect())
        };
        let root = self.path_of(layout::STACKS);
        let mut stacks = Vec::new();
        match self.layout {
            Layout::Legacy => {
                stacks.extend(names(&root)?.iter().filter_map(|name| StackReference::without_project(name).ok()));
            }
            Layout::Projects => {
                let mut listed = ListedNames::default();
                for project in list(&root)?.into_iter().filter(|entry| entry.is_folder) {
                    let folder = root.join(&project.name);
                    let names = names(&folder)?;
                    let counted = names.iter().try_for_each(|name| listed.add(name));
                    counted.map_err(|reason| FileError::of("list", &folder)(io::Error::other(reason)))?;
                    stacks.extend(names.iter().filter_map(|name| StackReference::new(&project.name, name).ok()));
                }
            }
        }
        stacks.sort();
        stacks.dedup();
        Ok(stacks)
    }

    pub(super) fn tags(&self, stack: &StackReference) -> Result<Tags, StoreError> {
        let path = self.path_of(&self.layout.tags(stack));
        let Some(content) = read_if_exists(&path, MAX_DOCUMENT_BYTES)? else { return Ok(Tags::new()) };
        tags::read(&content, &path.display().to_string())
    }

    pub(super) fn set_tags(&self, stack: &StackReference, tags: Tags) -> Result<(), StoreError> {
        let key = self.layout.tags(stack);
        if tags.is_empty() {
            return self.remove(&key);
        }
        self.write(&key, tags::write(tags).as_bytes())
    }

    pub(super) fn remove_stack(
        &self,
        lock: &StackLock,
        backups: Backups,
        expected: &Expected,
    ) -> Result<(), StoreError> {
        self.check_lock(lock)?;
        self.check_expected(&lock.stack, expected)?;
        let stack = &lock.stack;
        let current = self.current_variant(stack)?;
        self.back_up_and_remove(stack)?;
        self.remove(&self.layout.tags(stack))?;
        self.remove_files(&self.layout.history(stack))?;
        if backups == Backups::Removed {
            self.remove_files(&self.layout.backups(stack))?;
            if let Some(variant) = current {
                self.remove(&format!("{}.bak", self.layout.checkpoint(stack, variant)))?;
            }
        }
        Ok(())
    }

    /// Removes the files of a folder, and the folder if it is empty then.
    fn remove_files(&self, folder: &str) -> Result<(), StoreError> {
        for entry in list(&self.path_of(folder))?.iter().filter(|entry| !entry.is_folder) {
            self.remove(&format!("{folder}/{}", entry.name))?;
        }
        remove_if_empty(&self.path_of(folder))
    }
}
