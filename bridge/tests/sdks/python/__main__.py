"""A provider on the official Python SDK that keeps what it is given."""

import sys

from pulumi.provider.experimental.provider import (
    CheckResponse,
    ConfigureResponse,
    CreateResponse,
    DiffResponse,
    InvokeResponse,
    Provider,
    ReadResponse,
    UpdateResponse,
)
from pulumi.provider.experimental.server import main


class Keeper(Provider):
    async def check_config(self, request):
        return CheckResponse(inputs=request.new_inputs)

    async def configure(self, request):
        return ConfigureResponse(accept_secrets=True)

    async def diff(self, request):
        return DiffResponse(changes=True, replaces=["text"])

    async def create(self, request):
        if request.properties.get("fail"):
            raise ValueError("the keeper refuses")
        return CreateResponse(resource_id="kept", properties=request.properties)

    async def read(self, request):
        return ReadResponse(resource_id=request.resource_id, properties=request.properties, inputs=request.inputs)

    async def update(self, request):
        return UpdateResponse(properties=request.news)

    async def delete(self, request):
        pass

    async def invoke(self, request):
        return InvokeResponse(return_value=request.args)


main(sys.argv[1:], "1.2.3", Keeper())
