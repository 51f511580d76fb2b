"""Provider of the package kubernetes: its charts are components on Pulumi's Python SDK, which register one deployment each.

All other calls go to the fake cloud, which runs as a process of its own and holds inputs to the SDK package. The inputs of a
chart are held to it, too. Usage: provider.py FAKE_CLOUD ENGINE_ADDRESS.
"""

import asyncio
import subprocess
import sys

import grpc
import pulumi
from pulumi.provider import ConstructResult, Provider
from pulumi.provider.server import ProviderServicer
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

CHART = "kubernetes:helm.sh/v4:Chart"
FORWARDED = [
    "CheckConfig", "DiffConfig", "Configure", "Check", "Diff", "Create", "Read", "Update", "Delete", "Invoke", "Cancel",
]


class Chart(pulumi.ComponentResource):
    """Chart with the deployment of an operator."""

    def __init__(self, name, inputs, options):
        super().__init__(CHART, name, {}, options)
        pulumi.CustomResource(
            "kubernetes:apps/v1:Deployment",
            f"{name}-operator",
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": inputs["name"], "namespace": inputs["namespace"]},
            },
            pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


class Charts(Provider):
    """Part of the provider that makes components."""

    def __init__(self):
        super().__init__("4.32.0")

    def construct(self, name, resource_type, inputs, options):
        if resource_type != CHART:
            raise ValueError(f"{resource_type} is no component")
        return ConstructResult(Chart(name, inputs, options).urn, {})


class Servicer(ProviderServicer):
    """Whole provider."""

    def __init__(self, engine, cloud):
        super().__init__(Charts(), [], engine_address=engine)
        self.cloud = cloud

    async def Construct(self, request, context):
        urn = f"urn:pulumi:s::p::{request.type}::{request.name}"
        checked = await self.cloud.Check(provider_pb2.CheckRequest(urn=urn, news=request.inputs))
        if checked.failures:
            raise ValueError(f"{request.name}: {checked.failures}")
        return await super().Construct(request, context)


def forwarding(method):
    """Returns a method that passes a call on to the fake cloud."""

    async def call(self, request, context):
        try:
            return await getattr(self.cloud, method)(request)
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details())

    return call


for name in FORWARDED:
    setattr(Servicer, name, forwarding(name))


async def serve(program, engine):
    """Serves until the process is killed, and prints the port first."""
    process = subprocess.Popen([program, engine], stdout=subprocess.PIPE, text=True)
    cloud = grpc.aio.insecure_channel(f"127.0.0.1:{process.stdout.readline().strip()}")
    server = grpc.aio.server()
    servicer = Servicer(engine, provider_pb2_grpc.ResourceProviderStub(cloud))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:3]))
