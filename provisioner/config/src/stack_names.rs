//! Names of the stacks of a repository.

use std::io;
use std::path::Path;

use crate::diagnostics::Diagnostic;
use crate::files;
use crate::load::{FILE, Workspace};

/// Names in the folder of the stacks, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackNames {
    /// Stacks.
    pub stacks: Vec<String>,
    /// Client stacks of Simple Container, which have a `client.yaml` and no `server.yaml`.
    pub client_stacks: Vec<String>,
}

impl Workspace<'_> {
    /// Returns the names of all stacks: the folders and symbolic links in the stacks folder, hidden ones included, without those of
    /// client stacks.
    ///
    /// # Errors
    /// The folder cannot be read, or there are no stacks and a server.yaml is where none is read.
    pub fn stack_names(&self) -> Result<StackNames, Box<Diagnostic>> {
        let folder = self.stacks_folder();
        let entries = files::list_entries(&folder).map_err(|error| self.unreadable_stacks_folder(&folder, &error))?;
        let mut names = StackNames::default();
        for entry in entries.into_iter().filter(|entry| entry.is_folder_or_link) {
            let Some(name) = entry.path.file_name().and_then(|name| name.to_str()) else { continue };
            let of_kind =
                if files::is_client_stack(&entry.path) { &mut names.client_stacks } else { &mut names.stacks };
            of_kind.push(name.to_owned());
        }
        if names == StackNames::default()
            && let Some(misplaced) = self.misplaced_file(&folder)
        {
            return Err(misplaced.into());
        }
        Ok(names)
    }

    fn unreadable_stacks_folder(&self, folder: &Path, error: &io::Error) -> Box<Diagnostic> {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        if let Some(misplaced) = self.misplaced_file(folder).filter(|_| is_missing) {
            return misplaced.into();
        }
        let display_path = self.repository.display_path(folder);
        let source = match (self.stacks_dir, &self.profile.stacks_dir) {
            (Some(_), _) => "; --dir names this folder",
            (None, Some(_)) => "; `stacksDir` of the profile names this folder",
            (None, None) => "",
        };
        Diagnostic::error(FILE, None, format_args!("failed to read stacks dir: open {display_path}: {error}"))
            .help(format_args!("a stack is a folder with a server.yaml below `{display_path}`{source}"))
            .into()
    }

    /// Returns an error for a server.yaml where none is read: beside the folders of stacks, or above them. It is for repositories
    /// without stacks.
    fn misplaced_file(&self, stacks_folder: &Path) -> Option<Diagnostic> {
        let root = &self.repository.root;
        let places = [stacks_folder.to_owned(), root.join(".sc"), root.clone()];
        let path = places.into_iter().map(|place| place.join("server.yaml")).find(|path| path.is_file())?;
        let (path, folder) = (self.repository.display_path(&path), self.repository.display_path(stacks_folder));
        let help = format_args!("move it to {folder}/NAME/server.yaml: the folder has the name of the stack");
        Some(Diagnostic::error(FILE, None, format_args!("{path} is in the folder of no stack")).help(help))
    }
}
