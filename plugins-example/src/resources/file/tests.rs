use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tonic::Code;

use super::super::tests::{bag, context, nothing};
use super::*;

const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn inputs(path: &str, content: &str, mode: &str) -> PropertyMap {
    bag([("path", path.into()), ("content", content.into()), ("mode", mode.into())])
}

fn recorded(inputs: &PropertyMap) -> State {
    State { inputs: inputs.clone(), outputs: outputs(inputs) }
}

#[test]
fn a_file_lives_and_dies() {
    let (_keep, ctx) = context();
    let created = File.create(&ctx, &inputs("a", "hello", "0640")).unwrap();
    assert_eq!(created.id, "a");
    assert_eq!((&created.outputs["sha256"], &created.outputs["size"]), (&HELLO.into(), &5.0.into()));
    let place = ctx.root.join("a");
    assert_eq!(fs::read_to_string(&place).unwrap(), "hello");
    assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o7777, 0o640);

    let news = inputs("a", "goodbye", "0600");
    let updated = File.update(&ctx, "a", &recorded(&inputs("a", "hello", "0640")), &news).unwrap();
    assert_eq!((updated.outputs, updated.notice), (outputs(&news), None));
    assert_eq!(fs::read_to_string(&place).unwrap(), "goodbye");
    assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o7777, 0o600);

    File.delete(&ctx, "a").unwrap();
    assert!(!place.exists());
    File.delete(&ctx, "a").unwrap();
}

#[test]
fn what_exists_already_is_not_written_over() {
    let (_keep, ctx) = context();
    ctx.root.create().unwrap();
    fs::write(ctx.root.join("a"), "theirs").unwrap();
    let status = File.create(&ctx, &inputs("a", "ours", "0644")).unwrap_err();
    assert_eq!(status.code(), Code::AlreadyExists);
    assert!(status.message().contains("Import it (its id is a)"), "{status}");
    assert_eq!(fs::read_to_string(ctx.root.join("a")).unwrap(), "theirs");
}

#[test]
fn a_missing_folder_is_an_error_that_says_what_to_do() {
    let (_keep, ctx) = context();
    let status = File.create(&ctx, &inputs("no/a", "x", "0644")).unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().contains("Declare it as files:fs:Directory"), "{status}");
}

#[test]
fn drift_of_content_and_mode_shows_in_inputs_and_outputs() {
    let (_keep, ctx) = context();
    let before = inputs("a", "hello", "0644");
    File.create(&ctx, &before).unwrap();
    fs::write(ctx.root.join("a"), "drifted").unwrap();
    fs::set_permissions(ctx.root.join("a"), fs::Permissions::from_mode(0o600)).unwrap();
    let live = File.read(&ctx, "a", &recorded(&before)).unwrap().unwrap();
    assert_eq!(live.inputs, inputs("a", "drifted", "0600"));
    assert_eq!(live.outputs, outputs(&inputs("a", "drifted", "0600")));
}

#[test]
fn what_is_gone_or_no_file_any_more_does_not_exist() {
    let (_keep, ctx) = context();
    let before = inputs("a", "hello", "0644");
    assert!(File.read(&ctx, "a", &recorded(&before)).unwrap().is_none());
    fs::create_dir_all(ctx.root.join("a")).unwrap();
    assert!(File.read(&ctx, "a", &recorded(&before)).unwrap().is_none());
    File.delete(&ctx, "a").unwrap();
    assert!(ctx.root.join("a").exists());
    assert!(File.read(&ctx, "no/folder/a", &recorded(&before)).unwrap().is_none());
}

#[test]
fn an_update_writes_a_vanished_file_again_but_not_over_something_else() {
    let (_keep, ctx) = context();
    let before = inputs("a", "hello", "0644");
    ctx.root.create().unwrap();
    let updated = File.update(&ctx, "a", &recorded(&before), &before).unwrap();
    assert_eq!(updated.notice, Some("the file was gone, and has been written again"));
    assert_eq!(fs::read_to_string(ctx.root.join("a")).unwrap(), "hello");

    fs::remove_file(ctx.root.join("a")).unwrap();
    symlink("elsewhere", ctx.root.join("a")).unwrap();
    File.update(&ctx, "a", &recorded(&before), &before).unwrap_err();
    assert!(ctx.root.join("a").is_symlink());
}

#[test]
fn an_update_over_foreign_changes_says_so() {
    let (_keep, ctx) = context();
    let before = inputs("a", "hello", "0644");
    File.create(&ctx, &before).unwrap();
    fs::write(ctx.root.join("a"), "drifted").unwrap();
    let updated = File.update(&ctx, "a", &recorded(&before), &inputs("a", "new", "0644")).unwrap();
    assert!(updated.notice.unwrap().contains("somebody else"));
}

#[test]
fn a_secret_content_stays_secret_with_all_that_follows_from_it() {
    let (_keep, ctx) = context();
    let mut secret = inputs("a", "hello", "0644");
    secret.insert("content".into(), PropertyValue::secret("hello".into()));
    let created = File.create(&ctx, &secret).unwrap();
    fs::write(ctx.root.join("a"), "drifted").unwrap();
    let live = File.read(&ctx, "a", &recorded(&secret)).unwrap().unwrap();
    for outputs in [&created.outputs, &live.outputs] {
        for name in ["content", "sha256", "size"] {
            assert!(outputs[name].is_secret(), "{name}");
        }
        assert!(!outputs["path"].is_secret());
    }
    assert!(live.inputs["content"].is_secret());
}

#[test]
fn a_preview_leaves_unknown_what_it_cannot_know() {
    let mut news = inputs("a", "", "0644");
    news.insert("content".into(), PropertyValue::UNKNOWN);
    let foretold = File.preview(&news, None);
    assert_eq!(foretold["content"], PropertyValue::UNKNOWN);
    assert_eq!(foretold["sha256"], PropertyValue::UNKNOWN);
    assert_eq!(foretold["size"], PropertyValue::Unknown(UnknownKind::Number));
    assert_eq!(foretold["path"], "a".into());

    let known = inputs("a", "hello", "0644");
    assert_eq!(File.preview(&known, None), outputs(&known));
}

#[test]
fn an_import_finds_the_inputs_by_any_spelling_of_the_path() {
    let (_keep, ctx) = context();
    ctx.root.create().unwrap();
    fs::write(ctx.root.join("a"), "theirs").unwrap();
    fs::set_permissions(ctx.root.join("a"), fs::Permissions::from_mode(0o640)).unwrap();
    let live = File.read(&ctx, "./a", &nothing()).unwrap().unwrap();
    assert_eq!((live.id.as_str(), live.inputs), ("a", inputs("a", "theirs", "0640")));
    assert_eq!(File.read(&ctx, "../a", &nothing()).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn a_content_that_is_no_text_is_drift_but_cannot_be_imported() {
    let (_keep, ctx) = context();
    ctx.root.create().unwrap();
    fs::write(ctx.root.join("a"), [b'h', 0xff]).unwrap();
    let live = File.read(&ctx, "a", &recorded(&inputs("a", "h", "0644"))).unwrap().unwrap();
    assert_eq!(text(&live.inputs, "content"), Some("h\u{fffd}"));
    assert_eq!(File.read(&ctx, "a", &nothing()).unwrap_err().code(), Code::FailedPrecondition);
}

#[test]
fn nothing_is_written_through_a_link_that_leaves_the_root() {
    let (folder, ctx) = context();
    ctx.root.create().unwrap();
    fs::create_dir(folder.path().join("outside")).unwrap();
    symlink("../outside", ctx.root.join("out")).unwrap();
    let status = File.create(&ctx, &inputs("out/a", "x", "0644")).unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(status.message().contains("leads out of the root"), "{status}");
    assert!(fs::read_dir(folder.path().join("outside")).unwrap().next().is_none());
}

#[test]
fn a_cancelled_create_leaves_nothing() {
    let (_keep, ctx) = context();
    ctx.cancelled.cancel();
    let status = File.create(&ctx, &inputs("a", "x", "0644")).unwrap_err();
    assert_eq!(status.code(), Code::Aborted);
    assert!(fs::read_dir(ctx.root.join(".")).unwrap().next().is_none());
}
