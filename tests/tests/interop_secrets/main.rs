//! Tests of the keys and the ciphers of the secrets store: keys of OpenSSH and OpenSSL in each format, and texts that
//! OpenSSL and Python's `cryptography` encrypt or decrypt.

#![expect(clippy::unwrap_used, reason = "a test panics at its first failure")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrets_store::ciphers::{decrypt, encrypt, is_legacy};
use secrets_store::keys::{KeyError, KeyPair, PrivateKey, PublicKey};
use serde_json::{Value, json};
use tests::commands::run;
use tests::sdks::python_venv;

const PASSPHRASE: &str = "low tide";

/// Runs a program with arguments that are separated by spaces; `%` stands for a space, and `PASS` for the passphrase.
fn call(program: &str, arguments: &str, folder: &Path) -> Vec<u8> {
    let word = |word: &str| if word == "PASS" { PASSPHRASE.to_owned() } else { word.replace('%', " ") };
    run(Command::new(program).args(arguments.split(' ').map(word)).current_dir(folder)).unwrap()
}

/// A key of another program: its file, and whether it is encrypted.
struct Key {
    file: PathBuf,
    is_encrypted: bool,
    public: String,
}

impl Key {
    fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }

    fn private(&self) -> PrivateKey {
        PrivateKey::parse(&self.text(), self.is_encrypted.then_some(PASSPHRASE), "key").unwrap()
    }

    fn public(&self) -> PublicKey {
        PublicKey::of_line(&self.public)
    }
}

/// Generates keys of each format.
fn keys(folder: &Path) -> Vec<Key> {
    let ssh = |name: &str, arguments: &str| {
        call("ssh-keygen", &format!("-q -C a%comment -f {name} {arguments}"), folder);
    };
    ssh("ed25519", "-t ed25519 -N ");
    ssh("ed25519-enc", "-t ed25519 -N PASS");
    ssh("ed25519-cbc-enc", "-t ed25519 -Z aes256-cbc -N PASS");
    ssh("ed25519-gcm-enc", "-t ed25519 -Z aes256-gcm@openssh.com -N PASS");
    ssh("ed25519-chacha-enc", "-t ed25519 -Z chacha20-poly1305@openssh.com -N PASS");
    ssh("rsa2048", "-t rsa -b 2048 -N ");
    ssh("rsa3072-enc", "-t rsa -b 3072 -N PASS");
    ssh("rsa1024", "-t rsa -b 1024 -N ");
    ssh("pem", "-t rsa -b 2048 -m PEM -N ");
    ssh("pem-enc", "-t rsa -b 2048 -m PEM -N PASS");
    ssh("pkcs8", "-t rsa -b 2048 -m PKCS8 -N ");
    let openssl = |name: &str, arguments: &str| {
        call("openssl", arguments, folder);
        // OpenSSH refuses keys that others can read.
        call("chmod", &format!("600 {name}"), folder);
    };
    openssl("openssl-ed25519", "genpkey -algorithm ed25519 -out openssl-ed25519");
    openssl("openssl-rsa", "genrsa -out openssl-rsa 2048");
    for cipher in ["aes128", "aes192", "aes256", "des3"] {
        let name = format!("openssl-{cipher}-enc");
        openssl(
            &name,
            &format!(
                "rsa -in openssl-rsa -traditional -{cipher} -passout pass:{} -out {name}",
                PASSPHRASE.replace(' ', "%")
            ),
        );
    }
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".pub"))
        .collect();
    names.sort();
    let key = |name: String| {
        let file = folder.join(&name);
        let is_encrypted = name.ends_with("-enc");
        let source = if name.starts_with("openssl-") && is_encrypted { "openssl-rsa" } else { &name };
        let public = match fs::read_to_string(folder.join(format!("{source}.pub"))) {
            Ok(public) => public,
            // OpenSSH reads no Ed25519 key in PKCS#8.
            Err(_) if source == "openssl-ed25519" => {
                let der = call("openssl", "pkey -in openssl-ed25519 -pubout -outform DER", folder);
                let blob = [&[0, 0, 0, 11][..], b"ssh-ed25519", &[0, 0, 0, 32], &der[der.len() - 32..]].concat();
                format!("ssh-ed25519 {}", STANDARD.encode(blob))
            }
            Err(_) => String::from_utf8(call("ssh-keygen", &format!("-y -f {source}"), folder)).unwrap(),
        };
        Key { file, is_encrypted, public }
    };
    names.into_iter().map(key).collect()
}

/// Texts of different lengths, with characters of several bytes and bytes that are no character.
fn texts() -> [Vec<u8>; 6] {
    let long = "line of a text \u{2603}é\n".repeat(40);
    [Vec::new(), b"x".to_vec(), vec![b'x'; 128], vec![b'x'; 129], long.into_bytes(), (0..=255).collect()]
}

/// Shows: secrets.md#keys "Private keys may have the format of OpenSSH, of PKCS#1 or PKCS#8"
#[test]
fn keys_of_openssh_and_openssl_are_read_in_each_format() {
    let folder = tempfile::tempdir().unwrap();
    let keys = keys(folder.path());
    assert_eq!(keys.len(), 17);
    for key in &keys {
        let name = key.file.display();
        assert_eq!(key.private().recipient().unwrap(), key.public().recipient().unwrap(), "{name}");
        for text in texts() {
            let elements = encrypt(&text, &key.public().recipient().unwrap()).unwrap();
            assert_eq!(*decrypt(&elements, &key.private()).unwrap(), text, "{name}");
        }
        if key.is_encrypted {
            let parse = |passphrase| PrivateKey::parse(&key.text(), passphrase, "key");
            assert!(matches!(parse(None), Err(KeyError::PassphraseMissing { .. })), "{name}");
            let wrong = parse(Some("high tide")).unwrap_err();
            assert!(matches!(wrong, KeyError::WrongPassphrase { .. }), "{name}: {wrong}");
        }
    }
    call("openssl", "pkcs8 -topk8 -in openssl-rsa -passout pass:x -out pkcs8-enc", folder.path());
    call("ssh-keygen", "-q -t ecdsa -N  -f ecdsa", folder.path());
    let parse = |name: &str| PrivateKey::parse(&fs::read_to_string(folder.path().join(name)).unwrap(), None, "key");
    assert!(matches!(parse("pkcs8-enc"), Err(KeyError::UnsupportedEncryption { .. })));
    assert!(matches!(parse("ecdsa"), Err(KeyError::UnsupportedPrivate { .. })));
    let ecdsa = PublicKey::of_line(&fs::read_to_string(folder.path().join("ecdsa.pub")).unwrap());
    assert!(matches!(ecdsa.recipient(), Err(KeyError::UnsupportedPublic(_))));
}

/// Shows: secrets.md#the-store "OpenSSL and Python's `cryptography` decrypt what `sc` encrypts, and `sc` what they
///   encrypt."
#[test]
fn texts_of_python_are_decrypted_and_python_decrypts_ours() {
    let folder = tempfile::tempdir().unwrap();
    // Python refuses the shortest keys.
    let keys: Vec<Key> =
        keys(folder.path()).into_iter().filter(|key| !key.is_encrypted && !key.file.ends_with("rsa1024")).collect();
    let mut requests = Vec::new();
    for key in &keys {
        for text in texts() {
            let ours = encrypt(&text, &key.public().recipient().unwrap()).unwrap();
            requests.push(json!({ "decrypt": ours, "private": key.text() }));
            requests.push(json!({ "encrypt": STANDARD.encode(&text), "public": key.public }));
            if key.public.starts_with("ssh-ed25519") {
                requests.push(json!({ "legacy": STANDARD.encode(&text), "public": key.public }));
            }
        }
    }
    let python = python_venv("secrets-store", &["cryptography>=45"]).unwrap();
    let mut child = Command::new(python.python())
        .args(["-c", include_str!("vectors.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let mut replies = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut next = || serde_json::from_slice::<Value>(replies.next().unwrap()).unwrap();
    for key in &keys {
        for text in texts() {
            let name = key.file.display();
            assert_eq!(next(), STANDARD.encode(&text), "{name}: ours, decrypted by Python");
            let elements = |value: Value| serde_json::from_value::<Vec<String>>(value).unwrap();
            let theirs = elements(next());
            assert_eq!(*decrypt(&theirs, &key.private()).unwrap(), text, "{name}: decrypted by us");
            if key.public.starts_with("ssh-ed25519") {
                let legacy = elements(next());
                assert_eq!(*decrypt(&legacy, &key.private()).unwrap(), text, "{name}: legacy");
                assert!(is_legacy(&legacy) && !is_legacy(&theirs));
            }
        }
    }
    assert_eq!(keys.len(), 6);
}

/// Shows: secrets.md#the-store "OpenSSL and Python's `cryptography` decrypt what `sc` encrypts, and `sc` what they
///   encrypt."
#[test]
fn openssl_decrypts_our_pieces_and_encrypts_pieces_for_us() {
    let folder = tempfile::tempdir().unwrap();
    let pair = KeyPair::generate().unwrap();
    fs::write(folder.path().join("key"), pair.private.as_bytes()).unwrap();
    call("chmod", "600 key", folder.path());
    call("openssl", "rsa -in key -check -noout", folder.path());
    assert_eq!(
        String::from_utf8(call("ssh-keygen", "-y -f key", folder.path())).unwrap().trim_end(),
        pair.public.trim_end()
    );
    let recipient = PublicKey::of_line(&pair.public).recipient().unwrap();
    let private = PrivateKey::parse(&pair.private, None, "key").unwrap();
    let options = "-pkeyopt rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:sha256 -pkeyopt rsa_mgf1_md:sha256";
    for text in texts() {
        let mut decrypted = Vec::new();
        for element in encrypt(&text, &recipient).unwrap() {
            fs::write(folder.path().join("piece"), STANDARD.decode(element).unwrap()).unwrap();
            decrypted.extend(call(
                "openssl",
                &format!("pkeyutl -decrypt -inkey key {options} -in piece"),
                folder.path(),
            ));
        }
        assert_eq!(decrypted, text);
        let pieces = if text.is_empty() { vec![&text[..]] } else { text.chunks(190).collect() };
        let elements = pieces.into_iter().map(|piece| {
            fs::write(folder.path().join("piece"), piece).unwrap();
            STANDARD.encode(call("openssl", &format!("pkeyutl -encrypt -inkey key {options} -in piece"), folder.path()))
        });
        assert_eq!(*decrypt(&elements.collect::<Vec<_>>(), &private).unwrap(), text);
    }
}
