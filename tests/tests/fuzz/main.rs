//! Random damage to everything that `sc` reads. Each reader returns a value or an error: it does not panic, it ends, its error
//! is short, and what it accepts can be written and read again.
//!
//! `FUZZ_CASES` is the number of cases of each reader, `FUZZ_SEED` the seed of the first one; a failure names its seed.

#![expect(clippy::unwrap_used, reason = "a test panics at the first failure")]
#![expect(clippy::print_stdout, reason = "`cargo fuzz` shows the number of cases")]

mod archives;
mod machine;
mod mutation;
mod packages;
mod readers;
mod registry;

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use bridge::error::chain_masked;
use tokio::runtime::{Builder, Runtime};

use self::mutation::{Random, mutate};

/// Default number of cases of each reader, unless `FUZZ_CASES` is set.
const CASES: u64 = 2000;
/// Maximum length of the text of an error, in bytes.
const MAX_ERROR_BYTES: usize = 8 * 1024;
/// Time limit of a case; a case usually takes less than a millisecond.
const CASE_TIME_LIMIT: Duration = Duration::from_secs(60);

/// Reads a content. Returns the text of the error if the content is refused.
type Read = Box<dyn FnMut(&[u8]) -> Result<(), String> + Send>;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Reads one changed content for each seed. `share`: the number of cases is divided by it,
/// for a slow reader.
fn fuzz(reader: &'static str, share: u64, corpus: Vec<Vec<u8>>, make: impl FnOnce() -> Read + Send + 'static) {
    assert!(!corpus.is_empty(), "no corpus for {reader}");
    let (first, cases) = (setting("FUZZ_SEED", 1), setting("FUZZ_CASES", CASES) / share);
    let (started, progress) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        let mut read = make();
        let mut accepted = 0;
        for seed in first..first + cases {
            started.send(seed).ok();
            let mut random = Random::new(seed);
            let base = random.pick(&corpus);
            let content = mutate(&mut random, base, &corpus);
            let result = catch_unwind(AssertUnwindSafe(|| read(&content)));
            let refused = result.unwrap_or_else(|_| panic!("{reader}: panic with FUZZ_SEED={seed}"));
            let length = refused.as_ref().err().map_or(0, String::len);
            assert!(length <= MAX_ERROR_BYTES, "{reader}: error of {length} bytes with FUZZ_SEED={seed}");
            accepted += u64::from(refused.is_ok());
        }
        accepted
    });
    let mut current = first;
    loop {
        match progress.recv_timeout(CASE_TIME_LIMIT) {
            Ok(seed) => current = seed,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("{reader}: no end with FUZZ_SEED={current}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    let accepted = worker.join().unwrap_or_else(|_| panic!("{reader}: failed with FUZZ_SEED={current}"));
    println!("{reader}: {cases} cases from FUZZ_SEED={first}, {accepted} accepted");
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Returns an error as the program prints it.
fn message(error: &(dyn Error + 'static)) -> String {
    chain_masked(error, ToString::to_string)
}

/// Same as [`fuzz`], for contents that are read as long as nothing changes them.
fn fuzz_valid(reader: &'static str, share: u64, corpus: Vec<Vec<u8>>, make: impl Fn() -> Read + Send + 'static) {
    let mut read = make();
    for content in &corpus {
        assert_eq!(read(content), Ok(()), "{reader}: {}", String::from_utf8_lossy(content));
    }
    fuzz(reader, share, corpus, make);
}

/// Returns the contents of the files below a folder whose path is accepted, sorted by path.
fn corpus(folder: &str, accept: impl Fn(&str) -> bool) -> Vec<Vec<u8>> {
    fn walk(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(folder), &mut found);
    found.retain(|path| accept(&path.to_string_lossy()));
    found.sort();
    let contents = found.iter().map(|path| std::fs::read(path).unwrap());
    contents.filter(|content| content.len() < 100_000).collect()
}
