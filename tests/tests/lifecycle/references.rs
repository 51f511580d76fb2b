//! Tests of references that would make the state invalid: to the resource itself, to one that comes later, to none.

use engine::Goal;
use engine::events::Outcome;
use pulumi_proto::urn::Urn;
use state::Snapshot;

use crate::deploy;
use crate::fake_cloud::FakeCloud;
use crate::program::{PROJECT, STACK, remote_component, resource};
use crate::run::entry;

type AddReference = fn(&mut Goal, Urn);

/// Ways in which a goal refers to a resource.
const RELATIONS: [AddReference; 4] = [
    |goal, urn| goal.dependencies.push(urn),
    |goal, urn| goal.property_dependencies.entry("v".to_owned()).or_default().push(urn),
    |goal, urn| goal.deleted_with = Some(urn),
    |goal, urn| goal.replace_with.push(urn),
];

/// Shows: engine.md#differences-from-pulumi "A resource that refers to itself, or to a resource that has not been
///   registered before it, is refused before it is checked."
#[tokio::test]
async fn reference_to_itself_or_to_no_earlier_resource_is_refused_before_create() {
    // The resource itself, one that does not exist, one that is registered later, one that is only recorded.
    let itself = resource("a").urn_within(None);
    let missing = resource("missing").urn_within(None);
    let (later, recorded) = (resource("later"), resource("recorded"));
    for urn in [itself, missing, later.urn_within(None), recorded.urn_within(None)] {
        for relate in RELATIONS {
            for preview in [false, true] {
                let (cloud, state) = deploy(std::slice::from_ref(&recorded)).await;
                let target = urn.clone();
                let a = resource("a").input("v", "1").edit_goal(move |goal| relate(goal, target.clone()));
                let run = cloud.up(&state, &[a, later.clone()]).parallel(1);
                let ended = if preview { run.preview() } else { run }.run().await.expect(Outcome::Failed);
                assert!(!ended.changes().contains(&"create a".to_owned()), "{:?}", ended.changes());
                let errors = ended.errors.join("\n");
                assert!(errors.contains("refers to itself") || errors.contains("has not been registered"), "{errors}");
                assert!(!ended.hints.is_empty(), "{errors}");
                state::integrity::verify(&ended.state).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn resources_that_refer_to_each_other_are_refused() {
    let cloud = FakeCloud::default();
    let (a, b) = (resource("a").urn_within(None), resource("b").urn_within(None));
    let program = [
        resource("a").edit_goal(move |goal| goal.dependencies.push(b.clone())),
        resource("b").edit_goal(move |goal| goal.dependencies.push(a.clone())),
    ];
    let ended = cloud.up(&Snapshot::default(), &program).run().await.expect(Outcome::Failed);
    assert!(ended.changes().is_empty(), "{:?}", ended.changes());
}

/// Shows: engine.md#differences-from-pulumi "A resource that refers to itself, or to a resource that has not been
///   registered before it, is refused before it is checked."
#[tokio::test]
async fn child_of_a_component_that_refers_to_itself_is_refused_before_create() {
    let cloud = FakeCloud::default();
    let component = remote_component("c").urn_within(None);
    let child = Urn::new(STACK, PROJECT, Some(&component), "cloud:index:Thing", "c-child");
    for (dependency, accepted) in
        [(child.as_str(), false), ("urn:pulumi:s::p::x:y:Z::nope", false), (component.as_str(), true)]
    {
        let program = [remote_component("c").input("childDependency", dependency)];
        let outcome = if accepted { Outcome::Succeeded } else { Outcome::Failed };
        let ended = cloud.up(&Snapshot::default(), &program).run().await.expect(outcome);
        assert_eq!(!ended.changes().is_empty(), accepted, "{dependency}: {:?}", ended.changes());
        if accepted {
            assert_eq!(entry(&ended.state, "c-child").dependencies, std::slice::from_ref(&component));
        }
    }
}
