//! The bare loop: the same calls to the same provider, with nothing around them.

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
use crate::workload::{PARALLEL, TYPE, Thing, Workload};

type Client = ResourceProviderClient<Channel>;

/// What a provider said of a resource it made.
struct Made {
    id: String,
    inputs: Struct,
    outputs: Struct,
}

struct Loop {
    workload: Workload,
    things: Vec<Thing>,
    made: Vec<OnceCell<Made>>,
}

/// Measures the loop: each operation with a provider process of its own, as the engine has it.
pub(crate) async fn measure(workload: Workload) -> anyhow::Result<Figures> {
    let things = workload.things();
    let made = things.iter().map(|_| OnceCell::new()).collect();
    let work = Arc::new(Loop { workload, things, made });
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

/// Works through some resources, so many at once.
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
                    Operation::NoOp => work.look(&mut client, index).await?,
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
    fn news(&self, thing: &Thing) -> Struct {
        let made = thing.needs.iter().filter_map(|index| self.made[*index].get());
        thing.message(made.map(|made| format!("c:{}", made.id)).collect())
    }

    async fn create(&self, client: &mut Client, index: usize) -> anyhow::Result<()> {
        let thing = &self.things[index];
        let urn = thing.urn().to_string();
        let check = CheckRequest {
            urn: urn.clone(),
            name: thing.name.clone(),
            r#type: TYPE.to_owned(),
            olds: Some(Bag::default()),
            news: Some(self.news(thing).into()),
            random_seed: vec![7; 32],
            ..Default::default()
        };
        let inputs = opened(client.check(check).await?.into_inner().inputs)?;
        let create = CreateRequest {
            urn,
            name: thing.name.clone(),
            r#type: TYPE.to_owned(),
            properties: Some(Bag::from(&inputs)),
            ..Default::default()
        };
        let created = client.create(create).await?.into_inner();
        let made = Made { id: created.id, inputs, outputs: opened(created.properties)? };
        self.made[index].set(made).ok().context("a resource is made once")
    }

    async fn look(&self, client: &mut Client, index: usize) -> anyhow::Result<()> {
        let (thing, made) = (&self.things[index], self.made(index)?);
        let urn = thing.urn().to_string();
        let check = CheckRequest {
            urn: urn.clone(),
            name: thing.name.clone(),
            r#type: TYPE.to_owned(),
            olds: Some(Bag::from(&made.inputs)),
            news: Some(self.news(thing).into()),
            random_seed: vec![7; 32],
            ..Default::default()
        };
        let inputs = opened(client.check(check).await?.into_inner().inputs)?;
        let diff = DiffRequest {
            urn,
            name: thing.name.clone(),
            r#type: TYPE.to_owned(),
            id: made.id.clone(),
            olds: Some(Bag::from(&made.outputs)),
            old_inputs: Some(Bag::from(&made.inputs)),
            news: Some(inputs.into()),
            ..Default::default()
        };
        let reply = client.diff(diff).await?.into_inner();
        anyhow::ensure!(reply.diffs.is_empty(), "nothing changed, and the provider sees a difference");
        Ok(())
    }

    async fn delete(&self, client: &mut Client, index: usize) -> anyhow::Result<()> {
        let (thing, made) = (&self.things[index], self.made(index)?);
        let delete = DeleteRequest {
            urn: thing.urn().to_string(),
            name: thing.name.clone(),
            r#type: TYPE.to_owned(),
            id: made.id.clone(),
            properties: Some(Bag::from(&made.outputs)),
            old_inputs: Some(Bag::from(&made.inputs)),
            ..Default::default()
        };
        client.delete(delete).await?;
        Ok(())
    }

    fn made(&self, index: usize) -> anyhow::Result<&Made> {
        self.made[index].get().context("it was made before")
    }
}

/// What is in a bag, as a program on prost's own types has it.
fn opened(bag: Option<Bag>) -> anyhow::Result<Struct> {
    Ok(bag.unwrap_or_default().open()?)
}

/// A provider process that dies with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.0.kill().and_then(|()| self.0.wait()).ok();
    }
}

async fn start() -> anyhow::Result<(Process, Client)> {
    let mut child = Command::new(crate::PROVIDER).env_clear().stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("its output is piped")?;
    let process = Process(child);
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let channel = Endpoint::from_shared(format!("http://127.0.0.1:{}", line.trim()))?.connect().await?;
    let mut client = ResourceProviderClient::new(channel);
    client.get_plugin_info(()).await?;
    Ok((process, client))
}
