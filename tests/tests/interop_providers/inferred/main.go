// The package `inferred`: a provider with configuration on pulumi-go-provider, which decodes the inputs of CheckConfig and
// DiffConfig into the configuration with which it serves. Its resources note their creation and deletion in operations.log.
package main

import (
	"context"
	"fmt"
	"os"

	provider "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/infer"
)

type Config struct {
	Account string `pulumi:"account" provider:"replaceOnChanges"`
	Region  string `pulumi:"region,optional"`
}

type Pond struct{}

type PondArgs struct {
	Depth int `pulumi:"depth"`
}

type PondState struct {
	PondArgs
	Account string `pulumi:"account"`
}

func (Pond) Create(ctx context.Context, in infer.CreateRequest[PondArgs]) (infer.CreateResponse[PondState], error) {
	account := infer.GetConfig[Config](ctx).Account
	out := infer.CreateResponse[PondState]{ID: "pond", Output: PondState{in.Inputs, account}}
	if in.DryRun {
		return out, nil
	}
	return out, note("create in %s", account)
}

func (Pond) Delete(ctx context.Context, in infer.DeleteRequest[PondState]) (infer.DeleteResponse, error) {
	return infer.DeleteResponse{}, note("delete the pond of %s in %s", in.State.Account, infer.GetConfig[Config](ctx).Account)
}

func note(format string, values ...any) error {
	file, err := os.OpenFile("operations.log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintf(file, format+"\n", values...)
	return err
}

func main() {
	built, err := infer.NewProviderBuilder().WithConfig(infer.Config(Config{})).WithResources(infer.Resource(Pond{})).Build()
	if err == nil {
		err = provider.RunProvider(context.Background(), "inferred", "1.0.0", built)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
