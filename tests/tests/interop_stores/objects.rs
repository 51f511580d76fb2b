//! Properties that all stores of objects have.

use std::sync::Arc;

use futures_util::future::join_all;
use state::store::{Durability, ObjectErrorKind, ObjectVersion, Objects, WriteCondition, WriteError};

const LIMIT: u64 = 1024 * 1024;

/// Checks an empty store.
pub(crate) async fn check_objects(objects: Arc<dyn Objects>) {
    check_reads_and_writes(&*objects).await;
    check_conditions(&*objects).await;
    check_copies_and_removals(&*objects).await;
    check_listings(&*objects).await;
    check_contenders(&objects).await;
}

async fn write(objects: &dyn Objects, key: &str, content: &[u8], condition: WriteCondition) -> Option<ObjectVersion> {
    match objects.write(key, content.to_vec().into(), &condition, Durability::Immediate).await {
        Ok(version) => Some(version),
        Err(WriteError::Condition) => None,
        Err(WriteError::Request(error)) => panic!("{error:?}"),
    }
}

async fn content(objects: &dyn Objects, key: &str) -> Option<Vec<u8>> {
    objects.read(key, LIMIT).await.unwrap().map(|object| object.content)
}

async fn check_reads_and_writes(objects: &dyn Objects) {
    let key = ".pulumi/stacks/reef/coral.json";
    assert_eq!(content(objects, key).await, None);
    let all_bytes = (0..=255).cycle().take(100_000).collect::<Vec<u8>>();
    for content in [b"".as_slice(), b"{}", &all_bytes] {
        let version = write(objects, key, content, WriteCondition::None).await.unwrap();
        let object = objects.read(key, content.len() as u64).await.unwrap().unwrap();
        assert_eq!((object.content.as_slice(), &object.version), (content, &version));
        let age = jiff::Timestamp::now().duration_since(object.modified).abs();
        assert!(age.as_secs() < 3600, "{age:?}");
    }
    for limit in [99_999, 99_000, 1] {
        let error = objects.read(key, limit).await.unwrap_err();
        assert_eq!(error.kind, ObjectErrorKind::TooLarge, "{error:?}");
        let error = objects.read_all(&["none", key], limit).await.unwrap_err();
        assert_eq!(error.kind, ObjectErrorKind::TooLarge, "{error:?}");
        assert!(error.to_string().contains(key), "{error}");
    }
    write(objects, "two", b"2", WriteCondition::None).await.unwrap();
    let several = objects.read_all(&["two", "none", key, "two"], LIMIT).await.unwrap();
    let contents: Vec<_> = several.into_iter().map(|object| object.map(|object| object.content)).collect();
    assert_eq!(contents, [Some(b"2".to_vec()), None, Some(all_bytes), Some(b"2".to_vec())]);
    objects.remove("two").await.unwrap();
}

async fn check_conditions(objects: &dyn Objects) {
    let key = ".pulumi/locks/organization/reef/coral/1.json";
    let first = write(objects, key, b"1", WriteCondition::Missing).await.unwrap();
    assert_eq!(write(objects, key, b"2", WriteCondition::Missing).await, None);
    assert_eq!(content(objects, key).await.unwrap(), b"1");

    let second = write(objects, key, b"2", WriteCondition::Unchanged(first.clone())).await.unwrap();
    assert_eq!(write(objects, key, b"3", WriteCondition::Unchanged(first)).await, None);
    assert_eq!(content(objects, key).await.unwrap(), b"2");
    assert_eq!(objects.read(key, LIMIT).await.unwrap().unwrap().version, second);

    // The version of a removed object creates nothing.
    objects.remove(key).await.unwrap();
    assert_eq!(write(objects, key, b"4", WriteCondition::Unchanged(second.clone())).await, None);
    assert_eq!(content(objects, key).await, None);
    let third = write(objects, key, b"2", WriteCondition::Missing).await.unwrap();
    assert_eq!(write(objects, key, b"5", WriteCondition::Unchanged(third)).await.map(drop), Some(()));
}

async fn check_copies_and_removals(objects: &dyn Objects) {
    let (from, to) = (".pulumi/stacks/reef/a b+%_'\"é.json", ".pulumi/stacks/reef/a b+%_'\"é.json.bak");
    assert!(!objects.copy(from, to).await.unwrap());
    assert_eq!(content(objects, to).await, None);
    for text in [b"one".as_slice(), b"two"] {
        write(objects, from, text, WriteCondition::None).await.unwrap();
        assert!(objects.copy(from, to).await.unwrap());
        assert_eq!(content(objects, to).await.unwrap(), text);
    }
    // The copy has a version of its own.
    let copied = objects.read(to, LIMIT).await.unwrap().unwrap().version;
    assert!(write(objects, to, b"three", WriteCondition::Unchanged(copied)).await.is_some());
    assert_eq!(content(objects, from).await.unwrap(), b"two");
    for key in [from, to, to] {
        objects.remove(key).await.unwrap();
        assert_eq!(content(objects, key).await, None);
    }
}

async fn check_listings(objects: &dyn Objects) {
    // Names that match a wildcard, or begin like the folder, are not in it.
    let keys = ["l_st/b.json", "l_st/a.json", "l_st/sub/c.json", "list/d.json", "l_st2/e.json", "L_ST/f.json"];
    for key in keys {
        write(objects, key, b"x", WriteCondition::None).await.unwrap();
    }
    let names = |list: Vec<state::store::ListedObject>| list.into_iter().map(|object| object.name).collect::<Vec<_>>();
    assert_eq!(names(objects.list("l_st").await.unwrap()), ["a.json", "b.json"]);
    assert_eq!(names(objects.list_all("l_st").await.unwrap()), ["a.json", "b.json", "sub/c.json"]);
    assert_eq!(names(objects.list("missing").await.unwrap()), [""; 0]);
    let modified = objects.list("l_st/sub").await.unwrap().remove(0).modified;
    // A single object may have its time in whole seconds.
    let difference = modified.duration_since(objects.read("l_st/sub/c.json", LIMIT).await.unwrap().unwrap().modified);
    assert!(difference.abs().as_millis() < 1000, "{difference:?}");

    // More objects than a page of any store has.
    let expected = (0..1100).map(|number| format!("{number:04}.json")).collect::<Vec<_>>();
    for names in expected.chunks(50) {
        let write = |name: &String| {
            let key = format!("many/{name}");
            async move { write(objects, &key, b"x", WriteCondition::None).await.unwrap() }
        };
        join_all(names.iter().map(write)).await;
    }
    assert_eq!(names(objects.list("many").await.unwrap()), expected);
    assert_eq!(names(objects.list_all("many").await.unwrap()), expected);
}

async fn check_contenders(objects: &Arc<dyn Objects>) {
    // Equal contents may have equal versions.
    let race = |round: u32, condition: WriteCondition| {
        let contenders = (0..20).map(move |number| {
            let (objects, condition) = (Arc::clone(objects), condition.clone());
            async move { write(&*objects, "contended", format!("{round} {number}").as_bytes(), condition).await }
        });
        async { join_all(contenders).await.into_iter().flatten().collect::<Vec<_>>() }
    };
    let created = race(1, WriteCondition::Missing).await;
    assert_eq!(created.len(), 1, "{created:?}");
    let replaced = race(2, WriteCondition::Unchanged(created[0].clone())).await;
    assert_eq!(replaced.len(), 1, "{replaced:?}");
    assert_eq!(objects.read("contended", LIMIT).await.unwrap().unwrap().version, replaced[0]);
}
