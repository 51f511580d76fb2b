// Failures of calls with details of google.rpc. The SDK sends details for all calls but create and update.

import * as grpc from "@grpc/grpc-js";
import { Status } from "@pulumi/pulumi/proto/status_pb";
import { BinaryWriter } from "google-protobuf";
import { Any } from "google-protobuf/google/protobuf/any_pb";
import { Duration } from "google-protobuf/google/protobuf/duration_pb";

// Asks to repeat a call, which had no effect. Field 1 of RetryInfo is the delay.
export function busy(message: string, milliseconds: number): Error {
  const delay = new Duration();
  delay.setSeconds(Math.floor(milliseconds / 1000));
  delay.setNanos((milliseconds % 1000) * 1e6);
  const info = new BinaryWriter();
  info.writeMessage(1, delay, Duration.serializeBinaryToWriter);
  return failure(grpc.status.UNAVAILABLE, message, "google.rpc.RetryInfo", info);
}

// Names a property that cannot be used. Field 1 of BadRequest is a list of violations: 1 is the property, 2 the reason.
export function invalid(message: string, property: string, reason: string): Error {
  const request = new BinaryWriter();
  request.writeMessage(1, [property, reason], (texts: string[], violation: BinaryWriter) => {
    texts.forEach((text, index) => violation.writeString(index + 1, text));
  });
  return failure(grpc.status.INVALID_ARGUMENT, message, "google.rpc.BadRequest", request);
}

function failure(code: grpc.status, message: string, type: string, detail: BinaryWriter): Error {
  const any = new Any();
  any.pack(detail.getResultBuffer(), type);
  const status = new Status();
  status.setCode(code);
  status.setMessage(message);
  status.addDetails(any);
  const metadata = new grpc.Metadata();
  metadata.set("grpc-status-details-bin", Buffer.from(status.serializeBinary()));
  return Object.assign(new Error(message), { code, metadata });
}
