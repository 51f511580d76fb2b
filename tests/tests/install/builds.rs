//! Tests of builds that do not end.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use bridge::fs::ProcessStat;
use bridge::install::{FetchEvent, InstallError};
use bridge::plugin::{Build, GitSource};
use bridge::process::{Spawner, Supervision};
use tests::binaries;

use super::git::Repository;
use super::{Machine, git_source, plugin, write};

/// Command that prints the numbers of its processes, and never ends. The last one leaves the group and the session of the others.
const HANGING: &str =
    "echo half >main.txt; echo why >&2; echo $$; sleep 3600 & echo $!; setsid sleep 3600 & echo $!; wait";

/// Shows: plugins.md#builds "A build that takes longer than 15 minutes is ended"
#[tokio::test]
async fn build_that_hangs_is_ended_with_its_processes_and_leaves_nothing() {
    let repository = Repository::new();
    write(&repository.path().join("main.txt"), b"sources", 0o644);
    repository.commit_all();
    // Only a supervised process has a sandbox.
    let supervision = Arc::new(Supervision::new(&binaries::sc().unwrap()).unwrap());
    let spawner = Spawner::supervised(supervision);
    let machine = Machine { spawner, build_limit: Duration::from_secs(2), ..Machine::new() };
    let build = Some(Build::Command(HANGING.to_owned()));
    let source = GitSource { build, ..git_source(&repository.url(), "main") };

    let error = machine.install(&plugin(source)).await.unwrap_err();
    let InstallError::Build { command, status, output } = &error else { panic!("{error}") };
    assert!(command.starts_with("/bin/sh -c ") && command.contains("sleep 3600"), "{command}");
    assert_eq!((status.as_str(), output.as_str()), ("not done within 2 seconds", "why"));
    let numbers = machine.take_events().into_iter().filter_map(|event| match event {
        FetchEvent::BuildOutput(line) => line.parse().ok(),
        _ => None,
    });
    let processes: Vec<i32> = numbers.collect();
    assert_eq!(processes.len(), 3, "{processes:?}");
    for process in processes {
        assert!(ProcessStat::read(process).is_none_or(|process| !process.runs), "{process} still runs");
    }
    // The sources are kept as they were fetched, and nothing that the build has made.
    let packages = machine.names("packages");
    assert_eq!((packages.len(), machine.names("work")), (1, Vec::new()));
    let kept = machine.path("cache/packages").join(&packages[0]).join("main.txt");
    assert_eq!(fs::read(kept).unwrap(), b"sources");
}
