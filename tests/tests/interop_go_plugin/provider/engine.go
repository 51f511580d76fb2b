package main

import (
	"context"
	"fmt"

	plugin "github.com/hashicorp/go-plugin"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// engineID is the number under which the host offers its Engine, directly after connecting.
const engineID = 1

// loggingRecorder logs by the engine of the broker when it is configured, if the flag asks for it. The connection stays open,
// as that of a provider does.
type loggingRecorder struct {
	*recorder
	broker *plugin.GRPCBroker
	engine rpc.EngineClient
}

func (r *loggingRecorder) Configure(ctx context.Context, in *rpc.ConfigureRequest) (*rpc.ConfigureResponse, error) {
	if *engineLog {
		if r.engine == nil {
			connection, err := r.broker.Dial(engineID)
			if err != nil {
				return nil, fmt.Errorf("cannot dial the engine: %w", err)
			}
			r.engine = rpc.NewEngineClient(connection)
		}
		message := &rpc.LogRequest{Severity: rpc.LogSeverity_WARNING, Message: "configured by way of the broker"}
		if _, err := r.engine.Log(ctx, message); err != nil {
			return nil, fmt.Errorf("cannot log: %w", err)
		}
	}
	return r.recorder.Configure(ctx, in)
}
