"""The package `configured`: a provider whose replies depend on the calls that its process has received before.

Its argument is its behaviour. `decodes`: CheckConfig and DiffConfig set the account with which it serves, as in the library
pulumi-go-provider. `compares`: DiffConfig replies "replace" to equal inputs, once the process is configured.
"""

import sys
from concurrent import futures

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

BEHAVIOUR = sys.argv[1]


def note(text):
    with open("operations.log", "a") as log:
        log.write(text + "\n")


class Configured(provider_pb2_grpc.ResourceProviderServicer):
    account = None
    is_configured = False

    def decode(self, news):
        if BEHAVIOUR == "decodes":
            self.account = news["account"]

    def GetPluginInfo(self, request, context):
        return plugin_pb2.PluginInfo(version="1.0.0")

    def CheckConfig(self, request, context):
        self.decode(request.news)
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request, context):
        self.decode(request.news)
        is_stale = BEHAVIOUR == "compares" and self.is_configured
        if request.old_inputs["account"] == request.news["account"] and not is_stale:
            return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)
        changes = provider_pb2.DiffResponse.DIFF_SOME
        return provider_pb2.DiffResponse(changes=changes, diffs=["account"], replaces=["account"])

    def Configure(self, request, context):
        self.account, self.is_configured = request.args["account"], True
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    def Check(self, request, context):
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request, context):
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Create(self, request, context):
        reply = provider_pb2.CreateResponse(id="" if request.preview else "pond", properties=request.properties)
        reply.properties["account"] = self.account
        if not request.preview:
            note(f"create in {self.account}")
        return reply

    def Read(self, request, context):
        return provider_pb2.ReadResponse(id=request.id, inputs=request.inputs, properties=request.properties)

    def Delete(self, request, context):
        note(f"delete the pond of {request.properties['account']} in {self.account}")
        return empty_pb2.Empty()


server = grpc.server(futures.ThreadPoolExecutor(8))
provider_pb2_grpc.add_ResourceProviderServicer_to_server(Configured(), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
