package main

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// busy asks to repeat a call, which had no effect.
func busy(message string, delay time.Duration) error {
	return failure(codes.Unavailable, message, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
}

// invalid names a property that cannot be used.
func invalid(message, property, reason string) error {
	violation := &errdetails.BadRequest_FieldViolation{Field: property, Description: reason}
	request := &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{violation}}
	return failure(codes.InvalidArgument, message, request)
}

func failure(code codes.Code, message string, detail protoadapt.MessageV1) error {
	failed, err := status.New(code, message).WithDetails(detail)
	if err != nil {
		return err
	}
	return failed.Err()
}
