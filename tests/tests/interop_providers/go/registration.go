package main

import (
	"context"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"
)

// register reports the port of the provider to sc. The fields of the request are written by their numbers in host.proto;
// code that protoc has generated does the same.
func register(name, version string, port int) error {
	host := "unix:" + os.Getenv("SC_PLUGIN_HOST")
	connection, err := grpc.NewClient(host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	var fields []byte
	for index, text := range []string{os.Getenv("SC_PLUGIN_TOKEN"), name, version, "1.0"} {
		fields = protowire.AppendTag(fields, protowire.Number(index+1), protowire.BytesType)
		fields = protowire.AppendString(fields, text)
	}
	fields = protowire.AppendTag(fields, 5, protowire.VarintType)
	fields = protowire.AppendVarint(fields, uint64(port))
	request := &emptypb.Empty{}
	request.ProtoReflect().SetUnknown(fields)
	return connection.Invoke(context.Background(), "/simplecontainer.host.v1.Host/Register", request, &emptypb.Empty{})
}
