"""Failures of calls with details of google.rpc. Needs the package googleapis-common-protos."""

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime.proto import status_pb2


def busy(message, milliseconds):
    """Returns the failure that asks to repeat a call, which had no effect."""
    delay = Duration()
    delay.FromMilliseconds(milliseconds)
    return Failure(grpc.StatusCode.UNAVAILABLE, message, error_details_pb2.RetryInfo(retry_delay=delay))


def invalid(message, name, reason):
    """Returns the failure that names a property that cannot be used."""
    violation = error_details_pb2.BadRequest.FieldViolation(field=name, description=reason)
    request = error_details_pb2.BadRequest(field_violations=[violation])
    return Failure(grpc.StatusCode.INVALID_ARGUMENT, message, request)


class Failure(Exception):
    def __init__(self, code, message, detail):
        super().__init__(message)
        self.code = code
        self.status = status_pb2.Status(code=code.value[0], message=message)
        self.status.details.add().Pack(detail)


def with_details(call):
    async def wrapper(servicer, request, context):
        try:
            return await call(servicer, request, context)
        except Exception as error:
            # The SDK raises an error of its own while it handles that of the provider.
            failure = error if isinstance(error, Failure) else error.__context__
            if isinstance(failure, Failure):
                details = ("grpc-status-details-bin", failure.status.SerializeToString())
                await context.abort(failure.code, failure.status.message, trailing_metadata=(details,))
            raise

    return wrapper


for name in ["Configure", "Invoke", "Check", "Diff", "Create", "Read", "Update", "Delete"]:
    setattr(ProviderServicer, name, with_details(getattr(ProviderServicer, name)))
