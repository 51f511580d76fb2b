"""Writes the descriptors of the `pulumi` package to standard output, as a FileDescriptorSet."""

import importlib
import sys

from google.protobuf.descriptor_pb2 import FileDescriptorSet

files = FileDescriptorSet()
for name in sys.argv[1:]:
    module = importlib.import_module(f"pulumi.runtime.proto.{name}_pb2")
    module.DESCRIPTOR.CopyToProto(files.file.add())
sys.stdout.buffer.write(files.SerializeToString())
