//! History entries of Pulumi's command line: read, and written back as the same bytes.

use std::path::Path;

use state::format::UpdateInfo;

#[test]
fn history_entries_survive_a_round_trip() {
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/state");
    let mut seen = 0;
    for case in std::fs::read_dir(goldens).unwrap() {
        let history = case.unwrap().path().join("backend/.pulumi/history/reef");
        for stack in std::fs::read_dir(history).into_iter().flatten() {
            for file in std::fs::read_dir(stack.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                if path.to_str().unwrap().ends_with(".history.json") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    assert_eq!(UpdateInfo::from_json(&text).unwrap().to_json(), text, "{}", path.display());
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 20, "{seen}");
}
