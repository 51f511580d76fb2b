use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tonic::Code;

use super::super::tests::{bag, context, empty_state};
use super::*;

const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn inputs(path: &str, content: &str, mode: &str) -> PropertyMap {
    bag([("path", path.into()), ("content", content.into()), ("mode", mode.into())])
}

fn recorded(inputs: &PropertyMap) -> State {
    State { inputs: inputs.clone(), outputs: outputs(inputs) }
}

#[test]
fn file_is_created_read_updated_and_deleted() {
    let (_keep, ctx) = context();
    let created = File.create(&ctx, &inputs("a", "hello", "0640")).unwrap();
    assert_eq!(created.id, "a");
    assert_eq!((&created.outputs["sha256"], &created.outputs["size"]), (&HELLO.into(), &5.0.into()));
    let location = ctx.root.join("a");
    assert_eq!(fs::read_to_string(&location).unwrap(), "hello");
    assert_eq!(fs::metadata(&location).unwrap().permissions().mode() & 0o7777, 0o640);

    let news = inputs("a", "goodbye", "0600");
    let updated = File.update(&ctx, "a", &recorded(&inputs("a", "hello", "0640")), &news).unwrap();
    assert_eq!((updated.outputs, updated.notice), (outputs(&news), None));
    assert_eq!(fs::read_to_string(&location).unwrap(), "goodbye");
    assert_eq!(fs::metadata(&location).unwrap().permissions().mode() & 0o7777, 0o600);

    File.delete(&ctx, "a").unwrap();
    assert!(!location.exists());
    File.delete(&ctx, "a").unwrap();
}

#[test]
fn existing_file_is_not_overwritten_by_create() {
    let (_keep, ctx) = context();
    ctx.root.create().unwrap();
    fs::write(ctx.root.join("a"), "theirs").unwrap();
    let status = File.create(&ctx, &inputs("a", "ours", "0644")).unwrap_err();
    assert_eq!(status.code(), Code::AlreadyExists);
    assert!(status.message().contains("Import it (its id is a)"), "{status}");
    assert_eq!(fs::read_to_string(ctx.root.join("a")).unwrap(), "theirs");
}

#[test]
fn missing_folder_is_reported_with_a_remedy() {
    let (_keep, ctx) = context();
    let status = File.create(&ctx, &inputs("no/a", "x", "0644")).unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().contains("Declare it as files:fs:Directory"), "{status}");
}

#[test]
fn drift_of_content_and_mode_is_read() {
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
fn missing_file_or_folder_of_its_name_reads_as_deleted() {
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
fn update_writes_a_missing_file_but_does_not_replace_a_link() {
    let (_keep, ctx) = context();
    let before = inputs("a", "hello", "0644");
    ctx.root.create().unwrap();
    let updated = File.update(&ctx, "a", &recorded(&before), &before).unwrap();
    assert_eq!(updated.notice, Some("the file was missing and has been written again"));
    assert_eq!(fs::read_to_string(ctx.root.join("a")).unwrap(), "hello");

    fs::remove_file(ctx.root.join("a")).unwrap();
    symlink("elsewhere", ctx.root.join("a")).unwrap();
    File.update(&ctx, "a", &recorded(&before), &before).unwrap_err();
    assert!(ctx.root.join("a").is_symlink());
}

#[test]
fn update_reports_overwritten_foreign_changes() {
    let (_keep, ctx) = context();
    let before = inputs("a", "hello", "0644");
    File.create(&ctx, &before).unwrap();
    fs::write(ctx.root.join("a"), "drifted").unwrap();
    let updated = File.update(&ctx, "a", &recorded(&before), &inputs("a", "new", "0644")).unwrap();
    assert!(updated.notice.unwrap().contains("outside of this resource"));
}

#[test]
fn secret_content_and_its_derived_outputs_stay_secret() {
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
fn preview_with_unknown_content_has_unknown_outputs() {
    let mut news = inputs("a", "", "0644");
    news.insert("content".into(), PropertyValue::UNKNOWN);
    let previewed = File.preview(&news, None);
    assert_eq!(previewed["content"], PropertyValue::UNKNOWN);
    assert_eq!(previewed["sha256"], PropertyValue::UNKNOWN);
    assert_eq!(previewed["size"], PropertyValue::Unknown(UnknownKind::Number));
    assert_eq!(previewed["path"], "a".into());

    let known = inputs("a", "hello", "0644");
    assert_eq!(File.preview(&known, None), outputs(&known));
}

#[test]
fn import_normalizes_the_path() {
    let (_keep, ctx) = context();
    ctx.root.create().unwrap();
    fs::write(ctx.root.join("a"), "theirs").unwrap();
    fs::set_permissions(ctx.root.join("a"), fs::Permissions::from_mode(0o640)).unwrap();
    let live = File.read(&ctx, "./a", &empty_state()).unwrap().unwrap();
    assert_eq!((live.id.as_str(), live.inputs), ("a", inputs("a", "theirs", "0640")));
    assert_eq!(File.read(&ctx, "../a", &empty_state()).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn non_utf8_content_is_drift_and_cannot_be_imported() {
    let (_keep, ctx) = context();
    ctx.root.create().unwrap();
    fs::write(ctx.root.join("a"), [b'h', 0xff]).unwrap();
    let live = File.read(&ctx, "a", &recorded(&inputs("a", "h", "0644"))).unwrap().unwrap();
    assert_eq!(text(&live.inputs, "content"), Some("h\u{fffd}"));
    assert_eq!(File.read(&ctx, "a", &empty_state()).unwrap_err().code(), Code::FailedPrecondition);
}

#[test]
fn write_through_a_link_out_of_the_root_is_refused() {
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
fn cancelled_create_leaves_no_files() {
    let (_keep, ctx) = context();
    ctx.cancelled.cancel();
    let status = File.create(&ctx, &inputs("a", "x", "0644")).unwrap_err();
    assert_eq!(status.code(), Code::Aborted);
    assert!(fs::read_dir(ctx.root.join(".")).unwrap().next().is_none());
}
