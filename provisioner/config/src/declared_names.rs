//! Names in the files of a stack, for a shell that completes them: a file is parsed, and nothing else. No placeholder is
//! resolved, no secret is decrypted, and a file that is invalid has no names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bridge::fs::place_below;
use bridge::yaml::from_str;
use serde_yaml::Value;

use crate::files;
use crate::process_context::Repository;
use crate::profile::DEFAULT_STACKS_FOLDER;

/// Names that the files of a stack declare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredNames {
    /// Environments, each with the keys of its resources.
    pub environments: Vec<(String, Vec<String>)>,
    /// Outputs and templates.
    pub outputs: Vec<String>,
    /// Enabled plugins.
    pub plugins: BTreeSet<String>,
    /// Keys of `values` in `secrets.yaml`.
    pub secrets: Vec<String>,
}

/// Folder of the stacks of a repository.
#[derive(Clone, Debug)]
pub struct StackFolders {
    folder: PathBuf,
}

impl StackFolders {
    /// Finds the folder: `dir`, else that of a profile, else `.sc/stacks`. `None` if the repository leads out of itself: to
    /// look there may mount a file system.
    pub fn find(repository: &Repository, profile: &str, dir: Option<&Path>) -> Option<Self> {
        if let Some(dir) = dir {
            return Some(Self { folder: repository.root.join(dir) });
        }
        let profile = place_below(&repository.root, &Path::new(".sc").join(format!("cfg.{profile}.yaml"))).ok();
        let profile: Option<Value> = profile.and_then(|profile| read(&profile));
        let configured = profile.as_ref().and_then(|profile| profile.get("stacksDir")?.as_str());
        let folder = configured.filter(|folder| !folder.is_empty()).unwrap_or(DEFAULT_STACKS_FOLDER);
        place_below(&repository.root, Path::new(folder)).ok().map(|folder| Self { folder })
    }

    /// The names of the stacks, without client stacks.
    pub fn names(&self) -> Vec<String> {
        let entries = files::list_entries(&self.folder).unwrap_or_default().into_iter();
        let folders = entries.filter(|entry| entry.is_folder_or_link && !files::is_client_stack(&entry.path));
        folders.filter_map(|entry| Some(entry.path.file_name()?.to_str()?.to_owned())).collect()
    }

    /// Returns the names in the files of a stack.
    pub fn declared(&self, stack: &str) -> DeclaredNames {
        let file = |name: &str| place_below(&self.folder, &Path::new(stack).join(name)).ok();
        let server: Value = file("server.yaml").and_then(|file| read(&file)).unwrap_or_default();
        let secrets: Value = file("secrets.yaml").and_then(|file| read(&file)).unwrap_or_default();
        let environments = server["resources"]["resources"].as_mapping().into_iter().flatten();
        let environments = environments
            .filter_map(|(name, environment)| Some((name.as_str()?.to_owned(), keys(&environment["resources"]))));
        let plugins = server["plugins"].as_sequence().into_iter().flatten();
        let enabled = plugins.filter(|plugin| plugin["enabled"].as_bool().unwrap_or(true));
        DeclaredNames {
            environments: environments.collect(),
            outputs: [keys(&server["outputs"]), keys(&server["templates"])].concat(),
            plugins: enabled.filter_map(|plugin| plugin["name"].as_str().map(str::to_owned)).collect(),
            secrets: keys(&secrets["values"]),
        }
    }
}

fn read(file: &Path) -> Option<Value> {
    from_str(&files::read_optional(file)?).ok()
}

fn keys(mapping: &Value) -> Vec<String> {
    mapping.as_mapping().into_iter().flatten().filter_map(|(key, _)| key.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_are_read_without_placeholders_and_links_that_lead_out() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = folder.path();
        let stack = root.join(".sc/stacks/dev");
        fs::create_dir_all(&stack).unwrap();
        let server = "plugins: [{ name: a }, { name: b, enabled: false }, 7]
outputs: { host: '${env:TOKEN}' }
templates: { page: {} }
resources: { resources: { prod: { resources: { web: {}, 3: {} } }, test: 7 } }
";
        fs::write(stack.join("server.yaml"), server).unwrap();
        fs::write(stack.join("secrets.yaml"), "values: { token: hush }").unwrap();
        let find = || StackFolders::find(&Repository::discover(root), "default", None);
        fs::create_dir(root.join(".sc/stacks/web")).unwrap();
        fs::write(root.join(".sc/stacks/web/client.yaml"), "").unwrap();
        assert_eq!(find().unwrap().names(), ["dev"]);
        let expected = DeclaredNames {
            environments: vec![("prod".to_owned(), vec!["web".to_owned()]), ("test".to_owned(), Vec::new())],
            outputs: vec!["host".to_owned(), "page".to_owned()],
            plugins: BTreeSet::from(["a".to_owned()]),
            secrets: vec!["token".to_owned()],
        };
        assert_eq!(find().unwrap().declared("dev"), expected);
        assert_eq!(find().unwrap().declared("../../.."), DeclaredNames::default());
        fs::write(elsewhere.path().join("server.yaml"), server).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), root.join(".sc/stacks/out")).unwrap();
        assert_eq!(find().unwrap().declared("out"), DeclaredNames::default());
        fs::write(root.join(".sc/cfg.default.yaml"), format!("stacksDir: {}\n", elsewhere.path().display())).unwrap();
        assert!(find().is_none(), "the folder is outside of the repository");
    }
}
