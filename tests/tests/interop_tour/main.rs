//! Runs the tour of the README as it is written: its files and commands, in order.

use std::fs;
use std::path::Path;
use std::process::Command;

use tests::binaries::sc;
use tests::sdks::{first_on_path, python_venv};

/// Step of the tour.
#[derive(Debug)]
enum Step {
    /// File, with its path and text.
    File(String, String),
    /// Command.
    Command(String),
}

/// Returns the steps of the README: `console` blocks, and blocks after a comment with a file name.
fn steps(readme: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut file: Option<String> = None;
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        if let Some(path) = line.strip_prefix("<!-- file: ") {
            file = path.strip_suffix(" -->").map(str::to_owned);
        } else if let Some(language) = line.strip_prefix("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            if let Some(path) = file.take() {
                steps.push(Step::File(path, block.join("\n") + "\n"));
            } else if language == "console" {
                let commands = block.iter().filter_map(|line| line.strip_prefix("$ "));
                steps.extend(commands.map(|command| Step::Command(command.to_owned())));
            }
        }
    }
    steps
}

#[test]
fn readme_tour_runs_as_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let venv = python_venv("python-pulumi", &["pulumi>=3.272.0"]).unwrap();
    let sc = sc().unwrap();
    let path = first_on_path(sc.parent().unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut transcript = String::new();
    for step in steps(&readme) {
        match step {
            Step::File(path, text) => {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            // The package is installed once for all suites.
            Step::Command(command) if command.contains("-m venv") => {
                std::os::unix::fs::symlink(venv.folder(), folder.path().join("plugins/note/venv")).unwrap();
            }
            Step::Command(command) if command.contains("pip install") => {}
            Step::Command(command) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &command]).current_dir(folder.path()).env("PATH", &path);
                let output = shell.env("HOME", folder.path()).output().unwrap();
                let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{command}: {}\n{text}", output.status);
                transcript.push_str(&format!("$ {command}\n{text}"));
            }
        }
    }
    for expected in ["4 to create", "4 created", "Hail.", "1 updated", "It said: Fog.", "4 deleted"] {
        assert!(transcript.contains(expected), "{expected} is missing from\n{transcript}");
    }
    assert!(!folder.path().join("weather--today.note").exists(), "{transcript}");
}
