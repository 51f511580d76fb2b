// Command pulumi-resource-greeting is a minimal Pulumi provider behind HashiCorp's go-plugin. It listens at a Unix
// socket in a private folder, with certificates of each start, so that no other account of the machine can call it with the
// credentials that Configure receives. It opens no port: it logs by the Engine that its host offers behind the broker.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Cookie and version by which sc and its plugins recognize each other. A file that is run by hand says so, and ends.
var handshake = plugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "SC_PLUGIN_COOKIE",
	MagicCookieValue: "simple-container-provider",
}

const (
	// Number of the Engine among the services that the host offers behind the broker.
	engineID = 1
	// Largest message in bytes. Without it, the limit of gRPC is 4 MiB.
	maxMessage = 400 << 20
	// Value that is not known yet, in a preview.
	unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
)

func main() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: handshake,
		Plugins:         plugin.PluginSet{"pulumi-provider": &server{}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))...)
		},
		// What is logged here appears with its level, too, before the Engine is dialled and without it.
		Logger: hclog.New(&hclog.LoggerOptions{Name: "greeting", Level: hclog.Info, JSONFormat: true}),
	})
}

// server registers the provider in the gRPC server of the library. Nothing in this program is a client.
type server struct {
	plugin.NetRPCUnsupportedPlugin
}

func (*server) GRPCServer(broker *plugin.GRPCBroker, registrar *grpc.Server) error {
	pulumirpc.RegisterResourceProviderServer(registrar, newProvider(broker))
	return nil
}

func (*server) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("this program is only a plugin")
}

// provider serves the type greeting:index:Greeting. Methods that are not defined here return UNIMPLEMENTED.
type provider struct {
	pulumirpc.UnimplementedResourceProviderServer
	// brokered dials the Engine behind the broker at its first use, and keeps the connection.
	brokered func() (pulumirpc.EngineClient, error)
	// attached is the Engine at the address of the last Attach.
	attached atomic.Pointer[pulumirpc.EngineClient]
}

func newProvider(broker *plugin.GRPCBroker) *provider {
	return &provider{brokered: sync.OnceValues(func() (pulumirpc.EngineClient, error) {
		connection, err := broker.Dial(engineID)
		if err != nil {
			return nil, fmt.Errorf("the host offers no engine: %w", err)
		}
		return pulumirpc.NewEngineClient(connection), nil
	})}
}

// engine returns the Engine of the host: that of Attach if the process was started for other hosts, without TLS. These offer
// nothing behind the broker, which the library closes once the first of them disconnects.
func (p *provider) engine() (pulumirpc.EngineClient, error) {
	if attached := p.attached.Load(); attached != nil && os.Getenv("PLUGIN_CLIENT_CERT") == "" {
		return *attached, nil
	}
	return p.brokered()
}

// Attach receives the address of the Engine of a host. The connection is opened with the first message.
func (p *provider) Attach(_ context.Context, r *pulumirpc.PluginAttach) (*emptypb.Empty, error) {
	connection, err := grpc.NewClient(r.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	engine := pulumirpc.NewEngineClient(connection)
	p.attached.Store(&engine)
	return &emptypb.Empty{}, nil
}

// log shows a message beside the resource.
func (p *provider) log(ctx context.Context, urn, message string) error {
	engine, err := p.engine()
	if err != nil {
		return err
	}
	_, err = engine.Log(ctx, &pulumirpc.LogRequest{Severity: pulumirpc.LogSeverity_INFO, Urn: urn, Message: message})
	return err
}

func (*provider) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: "0.1.0"}, nil
}

// Configure dials the engine: the host announces it right after connecting and before each Configure, and the library
// forgets an announcement that is not dialled within five seconds.
func (p *provider) Configure(context.Context, *pulumirpc.ConfigureRequest) (*pulumirpc.ConfigureResponse, error) {
	if _, err := p.engine(); err != nil {
		return nil, err
	}
	return &pulumirpc.ConfigureResponse{SupportsPreview: true}, nil
}

func (*provider) Check(_ context.Context, r *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	reply := &pulumirpc.CheckResponse{Inputs: r.News}
	if _, ok := r.News.GetFields()["name"].GetKind().(*structpb.Value_StringValue); !ok {
		reply.Failures = []*pulumirpc.CheckFailure{{Property: "name", Reason: "a string is required"}}
	}
	return reply, nil
}

func (*provider) Diff(_ context.Context, r *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	if proto.Equal(r.OldInputs, r.News) {
		return &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_NONE}, nil
	}
	return &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_SOME, Diffs: []string{"name"}}, nil
}

func (p *provider) Create(ctx context.Context, r *pulumirpc.CreateRequest) (*pulumirpc.CreateResponse, error) {
	if !r.Preview {
		if err := p.log(ctx, r.Urn, "greeting "+r.Properties.Fields["name"].GetStringValue()); err != nil {
			return nil, err
		}
	}
	return &pulumirpc.CreateResponse{Id: "greeting", Properties: outputs(r.Properties)}, nil
}

func (*provider) Read(_ context.Context, r *pulumirpc.ReadRequest) (*pulumirpc.ReadResponse, error) {
	return &pulumirpc.ReadResponse{Id: r.Id, Inputs: r.Inputs, Properties: r.Properties}, nil
}

func (*provider) Update(_ context.Context, r *pulumirpc.UpdateRequest) (*pulumirpc.UpdateResponse, error) {
	return &pulumirpc.UpdateResponse{Properties: outputs(r.News)}, nil
}

func (*provider) Delete(context.Context, *pulumirpc.DeleteRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// outputs leaves the text out if the name is unknown: in a preview, a missing output is unknown.
func outputs(inputs *structpb.Struct) *structpb.Struct {
	fields := map[string]*structpb.Value{"name": inputs.Fields["name"]}
	if name := fields["name"].GetStringValue(); name != unknown {
		fields["text"] = structpb.NewStringValue("Hello, " + name + "!")
	}
	return &structpb.Struct{Fields: fields}
}
