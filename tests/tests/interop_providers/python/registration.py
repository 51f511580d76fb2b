"""Registration of a provider at sc. Needs the package grpcio-tools, and host.proto of sc beside this file."""

import os
import sys

import grpc
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime.proto import provider_pb2_grpc

host_pb2, host_pb2_grpc = grpc.protos_and_services("host.proto")

MAX_MESSAGE = 400 << 20


async def serve_registered(name, version, provider):
    """Serves the provider, and registers its port. The server runs until SIGTERM ends the process."""
    limits = [("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)]
    server = grpc.aio.server(options=limits)
    servicer = ProviderServicer([], version, provider, engine_address=os.environ["SC_PLUGIN_ENGINE"])
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()

    token = os.environ["SC_PLUGIN_TOKEN"]
    request = host_pb2.RegisterRequest(token=token, name=name, version=version, protocol_versions=["1.0"], port=port)
    # By default, the authority would be the path, with characters that HTTP does not allow there.
    options = [("grpc.default_authority", "localhost")]
    async with grpc.aio.insecure_channel("unix:" + os.environ["SC_PLUGIN_HOST"], options) as channel:
        try:
            await host_pb2_grpc.HostStub(channel).Register(request)
        except grpc.RpcError as error:
            await server.stop(None)
            sys.exit(error.details())
    await server.wait_for_termination()
