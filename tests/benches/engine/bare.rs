//! Bare loop: makes the same calls to the same provider, without an engine.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::Context as _;
use prost_types::Struct;
use pulumi_proto::property::wire::Bag;
use pulumi_proto::rpc::resource_provider_client::ResourceProviderClient;
use pulumi_proto::rpc::{CheckRequest, ConfigureRequest, CreateRequest, DeleteRequest, DiffRequest};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};

use crate::figures::{Figures, seconds};
use crate::workload::{BenchResource, PARALLEL, TYPE, Workload};

type Client = ResourceProviderClient<Channel>;

/// Resource that the provider created.
struct CreatedResource {
    id: String,
    inputs: Struct,
    outputs: Struct,
}

struct Loop {
    workload: Workload,
    resources: Vec<BenchResource>,
    created: Vec<OnceCell<CreatedResource>>,
}

/// Measures the loop. Like the engine, each operation has its own provider process.
pub(crate) async fn measure(workload: Workload) -> anyhow::Result<Figures> {
    let resources = workload.resources();
    let created = resources.iter().map(|_| OnceCell::new()).collect();
    let work = Arc::new(Loop { workload, resources, created });
    let mut times = Vec::new();
    for operation in [Operation::Create, Operation::NoOp, Operation::Destroy] {
        let (_process, mut client) = start().await?;
        let started = Instant::now();
        client.configure(ConfigureRequest::default()).await?;
        let mut layers = work.workload.layers();
        if operation == Operation::Destroy {
            layers.reverse();
        }
        for layer in layers {
            run(&work, &client, operation, layer).await?;
        }
        client.cancel(()).await?;
        times.push(seconds(started.elapsed()));
    }
    let [create, no_op, destroy] = times[..] else { anyhow::bail!("three operations have three times") };
    Ok(Figures { create, no_op, destroy, engine: None, command: None })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    NoOp,
    Destroy,
}

/// Handles a range of resources, [`PARALLEL`] at a time.
async fn run(
    work: &Arc<Loop>,
    client: &Client,
    operation: Operation,
    layer: std::ops::Range<usize>,
) -> anyhow::Result<()> {
    let next = Arc::new(AtomicUsize::new(layer.start));
    let mut workers = JoinSet::new();
    for _ in 0..PARALLEL.min(layer.len()) {
        let (work, mut client, next) = (Arc::clone(work), client.clone(), Arc::clone(&next));
        let end = layer.end;
        workers.spawn(async move {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= end {
                    return anyhow::Ok(());
                }
                match operation {
                    Operation::Create => work.create(&mut client, index).await?,
                    Operation::NoOp => work.check_unchanged(&mut client, index).await?,
                    Operation::Destroy => work.delete(&mut client, index).await?,
                }
            }
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(())
}

impl Loop {
    fn news(&self, resource: &BenchResource) -> Struct {
        let created = resource.dependencies.iter().filter_map(|index| self.created[*index].get());
        resource.message(created.map(|created| format!("c:{}", created.id)).collect())
    }

    async fn create(&self, client: &mut Client, index: usize) -> anyhow::Result<()> {
        let resource = &self.resources[index];
        let urn = resource.urn().to_string();
        let check = CheckRequest {
            urn: urn.clone(),
            name: resource.name.clone(),
            r#type: TYPE.to_owned(),
            olds: Some(Bag::default()),
            news: Some(self.news(resource).into()),
            random_seed: vec![7; 32],
            ..Default::default()
        };
        let inputs = decode_bag(client.check(check).await?.into_inner().inputs)?;
        let create = CreateRequest {
            urn,
            name: resource.name.clone(),
            r#type: TYPE.to_owned(),
            properties: Some(Bag::from(&inputs)),
            ..Default::default()
        };
        let created = client.create(create).await?.into_inner();
        let created = CreatedResource { id: created.id, inputs, outputs: decode_bag(created.properties)? };
        self.created[index].set(created).ok().context("a resource is created once")
    }

    async fn check_unchanged(&self, client: &mut Client, index: usize) -> anyhow::Result<()> {
        let (resource, created) = (&self.resources[index], self.created(index)?);
        let urn = resource.urn().to_string();
        let check = CheckRequest {
            urn: urn.clone(),
            name: resource.name.clone(),
            r#type: TYPE.to_owned(),
            olds: Some(Bag::from(&created.inputs)),
            news: Some(self.news(resource).into()),
            random_seed: vec![7; 32],
            ..Default::default()
        };
        let inputs = decode_bag(client.check(check).await?.into_inner().inputs)?;
        let diff = DiffRequest {
            urn,
            name: resource.name.clone(),
            r#type: TYPE.to_owned(),
            id: created.id.clone(),
            olds: Some(Bag::from(&created.outputs)),
            old_inputs: Some(Bag::from(&created.inputs)),
            news: Some(inputs.into()),
            ..Default::default()
        };
        let reply = client.diff(diff).await?.into_inner();
        anyhow::ensure!(reply.diffs.is_empty(), "the provider reports a difference without a change");
        Ok(())
    }

    async fn delete(&self, client: &mut Client, index: usize) -> anyhow::Result<()> {
        let (resource, created) = (&self.resources[index], self.created(index)?);
        let delete = DeleteRequest {
            urn: resource.urn().to_string(),
            name: resource.name.clone(),
            r#type: TYPE.to_owned(),
            id: created.id.clone(),
            properties: Some(Bag::from(&created.outputs)),
            old_inputs: Some(Bag::from(&created.inputs)),
            ..Default::default()
        };
        client.delete(delete).await?;
        Ok(())
    }

    fn created(&self, index: usize) -> anyhow::Result<&CreatedResource> {
        self.created[index].get().context("the resource was created before")
    }
}

/// Decodes a bag to prost's own types.
fn decode_bag(bag: Option<Bag>) -> anyhow::Result<Struct> {
    Ok(bag.unwrap_or_default().open()?)
}

/// Provider process that is killed when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended by itself.
        self.0.kill().and_then(|()| self.0.wait()).ok();
    }
}

async fn start() -> anyhow::Result<(Process, Client)> {
    let mut child = Command::new(crate::PROVIDER).env_clear().stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("the output is piped")?;
    let process = Process(child);
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let channel = Endpoint::from_shared(format!("http://127.0.0.1:{}", line.trim()))?.connect().await?;
    let mut client = ResourceProviderClient::new(channel);
    client.get_plugin_info(()).await?;
    Ok((process, client))
}
