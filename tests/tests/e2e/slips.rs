//! Files with one slip each, made from a good file: none of them may delete anything without a mistake or a question.

use std::fmt::Write as _;

use crate::repository::Repository;

/// Number of files with a slip.
const SLIPS: u64 = 100;
/// Seed of the slips; the variable `SLIP_SEED` sets another one.
const SEED: u64 = 20;

/// File without a slip, in the block style that people write.
const GOOD: &str = r#"schemaVersion: 1.0

provisioner:
  type: pulumi
  config:
    state-storage:
      type: fs
      config:
        path: "file://backend"
    secrets-provider:
      type: passphrase
      config:
        passPhrase: "hush"

plugins:
  - name: files
    source:
      type: local
      path: $FILES
    config:
      root: site

variables:
  motto:
    type: string
    value: "keep: calm"

x-common: &common
  mode: "0644"

resources:
  resources:
    prod:
      resources:
        shelf:
          type: files:fs:Directory
          config:
            path: shelf
        first:
          type: files:fs:File
          config:
            <<: *common
            path: "shelf/first"
            content: "${var:motto}"
          options:
            dependsOn: [shelf]
        second:
          type: files:fs:File
          name: second
          config:
            path: shelf/second
            content: "${resource:first.path} # not a comment"
    staging:
      resources:
        third:
          type: files:fs:File
          config:
            path: third
            content: "yes"

outputs:
  first: "${resource:prod/first.path}"
"#;

/// Pseudo-random numbers: SplitMix64.
struct Random(u64);

impl Random {
    /// Returns a number below a limit.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }
}

/// Returns the name of a slip and the file with it; `None` if it does not change the file.
fn slip(random: &mut Random) -> Option<(String, String)> {
    let mut lines: Vec<String> = GOOD.lines().map(str::to_owned).collect();
    let at = random.below(lines.len());
    let indent = |line: &str| line.len() - line.trim_start().len();
    // The line with those below it.
    let block = lines[at + 1..].iter().take_while(|line| indent(line) > indent(&lines[at]) && !line.is_empty()).count();
    let line = lines[at].clone();
    let kind = match random.below(8) {
        0 => {
            lines.remove(at);
            "delete the line"
        }
        1 => {
            lines.drain(at..=at + block);
            "delete the block"
        }
        2 => {
            lines[at] = line.strip_prefix("  ")?.to_owned();
            "move the line out"
        }
        3 => {
            lines[at] = format!("  {line}");
            "move the line in"
        }
        4 => {
            for line in &mut lines[at..=at + block] {
                *line = line.strip_prefix("  ")?.to_owned();
            }
            "move the block out"
        }
        5 => {
            let key = line.find(':').filter(|colon| *colon > indent(&line) + 2)?;
            let letter = indent(&line) + random.below(key - indent(&line));
            lines[at].remove(letter);
            "misspell the key"
        }
        6 => {
            lines.insert(at, line.clone());
            "duplicate the line"
        }
        _ => {
            lines[at] = line.replace('"', "");
            "unquote the line"
        }
    };
    let text = lines.iter().fold(String::new(), |text, line| text + line + "\n");
    (text != GOOD).then(|| (format!("{kind} {}: {}", at + 1, line.trim()), text))
}

#[test]
fn files_with_a_slip_delete_nothing_without_a_mistake_or_a_question() {
    let seed = std::env::var("SLIP_SEED").map_or(SEED, |seed| seed.parse().unwrap());
    println!("SLIP_SEED={seed}");
    let path = ".sc/stacks/reef/server.yaml";
    let repository = Repository::new(Default::default());
    repository.write(path, GOOD);
    repository.expect_exit(0, "provision");
    let created = repository.names("site");
    assert_eq!(created, ["site/shelf/first", "site/shelf/second", "site/third"]);

    let mut random = Random(seed);
    let (mut mistakes, mut questions, mut harmless, mut failures) = (0, 0, 0, String::new());
    let slips = std::iter::from_fn(|| Some(slip(&mut random))).flatten().take(SLIPS.try_into().unwrap());
    for (slip, text) in slips {
        repository.write(path, &text);
        let output = repository.start("preview -R --json").wait();
        let destroys = ["\"delete\"", "\"replace\""].iter().any(|change| output.stdout.contains(change));
        if output.status == "exit 1" {
            mistakes += 1;
        } else if output.status == "exit 0" && !destroys {
            harmless += 1;
        } else {
            questions += 1;
            let mut terminal = repository.start_on_terminal("provision -R");
            terminal.wait_until_shown("[y/N]");
            terminal.type_line("n");
            if terminal.wait() != 1 {
                writeln!(failures, "{slip}: {output:?}\n{}", terminal.screen()).unwrap();
            }
        }
        if repository.names("site") != created {
            writeln!(failures, "{slip}: the files are {:?}", repository.names("site")).unwrap();
        }
    }
    println!("{mistakes} mistakes, {questions} questions, {harmless} harmless");
    assert_eq!(failures, "", "SLIP_SEED={seed}");
    assert!(mistakes > 0 && questions > 0 && harmless > 0, "each case occurs");
}
