package main

import (
	"context"
	"slices"
	"strings"

	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
)

// place is the part of a resource request that has the address and token for publishing views.
type place interface {
	GetResourceStatusAddress() string
	GetResourceStatusToken() string
	GetName() string
}

// show publishes the parts of a resource, whose names are in its inputs ("x,y"), as views. Without inputs, the views
// are deleted.
func show(ctx context.Context, at place, old []*rpc.View, inputs *structpb.Struct) error {
	var wanted []string
	if parts := text(inputs, "parts"); parts != "" {
		wanted = strings.Split(parts, ",")
	}
	var steps []*rpc.ViewStep
	for _, view := range old {
		step := &rpc.ViewStep{Op: rpc.ViewStep_DELETE, Type: view.Type, Name: view.Name, Old: &rpc.ViewStepState{
			Type: view.Type, Name: view.Name, Inputs: view.Inputs, Outputs: view.Outputs,
		}}
		part := strings.TrimPrefix(view.Name, at.GetName()+".")
		if place := slices.Index(wanted, part); place >= 0 {
			step.Op, step.New = rpc.ViewStep_UPDATE, partOf(at.GetName(), part, inputs)
			wanted = slices.Delete(wanted, place, place+1)
		}
		steps = append(steps, step)
	}
	for _, part := range wanted {
		view := partOf(at.GetName(), part, inputs)
		steps = append(steps, &rpc.ViewStep{Op: rpc.ViewStep_CREATE, Type: view.Type, Name: view.Name, New: view})
	}
	if len(steps) == 0 {
		return nil
	}
	connection, err := grpc.NewClient(at.GetResourceStatusAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	request := &rpc.PublishViewStepsRequest{Token: at.GetResourceStatusToken(), Steps: steps}
	_, err = rpc.NewResourceStatusClient(connection).PublishViewSteps(ctx, request)
	return err
}

func partOf(thing, part string, inputs *structpb.Struct) *rpc.ViewStepState {
	return &rpc.ViewStepState{
		Type: "peergo:index:Part", Name: thing + "." + part,
		Inputs: &structpb.Struct{Fields: map[string]*structpb.Value{"part": structpb.NewStringValue(part)}},
		Outputs: &structpb.Struct{Fields: map[string]*structpb.Value{
			"v": inputs.Fields["v"], "secret": secret(text(inputs, "secret")),
		}},
	}
}
