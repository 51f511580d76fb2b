//! Drives a deployment with a provider of the same process.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;

use async_trait::async_trait;
use bridge::host::{HostError, ProviderHost, ProviderRequest};
use bridge::provider::{CheckReply, CheckRequest, CreateReply, CreateRequest, Provider, ProviderError};
use engine::events::{Event, EventSink, Operation};
use engine::{Deployment, DeploymentRequest, Goal, ProgramEnd, Registrar as _, StopSignals};
use pulumi_proto::property::{PropertyMap, PropertyValue};
use pulumi_proto::resource_id::ResourceId;
use pulumi_proto::urn::TypeToken;
use state::{MemoryRecorder, Snapshot};

/// Serves the package `demo` in memory.
#[derive(Debug)]
struct Demo;

#[async_trait]
impl Provider for Demo {
    async fn check(&self, request: CheckRequest) -> Result<CheckReply, ProviderError> {
        Ok(CheckReply { inputs: (*request.news).clone(), failures: Vec::new() })
    }
    async fn create(&self, request: CreateRequest) -> Result<CreateReply, ProviderError> {
        let outputs = PropertyMap::from([("text".to_owned(), PropertyValue::secret("correct horse".into()))]);
        Ok(CreateReply { id: ResourceId::new(request.urn.name()), outputs, ..CreateReply::default() })
    }
}

#[async_trait]
impl ProviderHost for Demo {
    async fn start_provider(&self, _: &ProviderRequest) -> Result<Arc<dyn Provider>, HostError> {
        Ok(Arc::new(Demo))
    }
}

impl EventSink for Demo {
    fn emit(&self, event: Event) {
        if let Event::StepSucceeded(step, _) = event {
            println!("{} {}", step.op.as_str(), step.urn);
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let request = DeploymentRequest::new("dev", "demo", Operation::Update);
    let recorder = Box::new(MemoryRecorder::new(Snapshot::default()));
    let (host, signals) = (Arc::new(Demo), StopSignals::default());
    let (deployment, run) = Deployment::new(request, Snapshot::default(), host.clone(), Some(recorder), host, signals);
    let program = async {
        let password = Goal::custom(TypeToken::new("demo:index:Password"), "door", PropertyMap::new());
        let end = deployment.register(password).await.map_or(ProgramEnd::Failed, |_| ProgramEnd::Completed);
        deployment.finish(end).await;
    };
    let (end, ()) = tokio::join!(run, program);
    println!("{:?}: {} resources", end.outcome, end.snapshot.resources.len());
}
