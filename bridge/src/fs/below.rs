//! Places of paths below a folder whose content somebody else has written: a link in it may lead anywhere.

use std::io;
use std::path::{Path, PathBuf};

use super::FileError;

/// Returns the place of a path below a folder, behind all symbolic links. The file need not exist.
///
/// # Errors
/// [`FileError`]: a link leads out of the folder, or to a file that does not exist.
pub fn place_below(folder: &Path, path: &Path) -> Result<PathBuf, FileError> {
    let place = folder.join(path);
    let refused = |text: String| FileError::of("use", &place)(io::Error::other(text));
    let real_folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    // A link to a file that does not exist could lead anywhere.
    let mut missing = place.ancestors().take_while(|ancestor| !ancestor.exists());
    if let Some(link) = missing.find(|ancestor| ancestor.symlink_metadata().is_ok()) {
        return Err(refused(format!("{} is a link to a file that does not exist", link.display())));
    }
    // The nearest folder that exists decides: those below are created.
    let real_place = |ancestor: &Path| {
        let rest = place.strip_prefix(ancestor).ok()?;
        // `join` would add a separator.
        ancestor.canonicalize().ok().map(|real| if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    };
    let found = place.ancestors().find_map(real_place).unwrap_or_else(|| place.clone());
    if !found.starts_with(&real_folder) {
        return Err(refused(format!("a link leads out of {}, to {}", folder.display(), found.display())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_behind_the_links_and_below_the_folder() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("inside")).unwrap();
        std::fs::write(elsewhere.path().join("file"), "").unwrap();
        for (link, target) in [
            ("out", elsewhere.path().to_owned()),
            ("file", elsewhere.path().join("file")),
            ("in", root.join("inside")),
            ("dangling", root.join("new")),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        let place = |path: &str| place_below(&root, Path::new(path));
        assert_eq!(place("a/b").unwrap(), root.join("a/b"));
        assert_eq!(place("in/a").unwrap(), root.join("inside/a"));
        assert_eq!(place("in").unwrap(), root.join("inside"));
        for path in ["out", "out/a", "file", "dangling", "dangling/a"] {
            let error = place(path).unwrap_err();
            assert_eq!(error.to_string(), format!("cannot use {}", root.join(path).display()));
        }
    }
}
