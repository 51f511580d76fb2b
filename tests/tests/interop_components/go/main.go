// Command pulumi-resource-comp is the component provider of the recordings on Pulumi's SDK for Go. It has the components
// comp:index:Pair and comp:index:Nest, and comp:index:Teller, which makes all other requests to the resource monitor.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"reflect"
	"syscall"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/provider"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

const schema = `{
  "name": "comp",
  "version": "1.0.0",
  "resources": {
    "comp:index:Pair": {
      "isComponent": true,
      "inputProperties": {"value": {"$ref": "pulumi.json#/Any"}, "secret": {"type": "string"}},
      "properties": {"first": {"type": "string"}, "last": {"$ref": "pulumi.json#/Any"}}
    },
    "comp:index:Nest": {
      "isComponent": true,
      "inputProperties": {"value": {"$ref": "pulumi.json#/Any"}},
      "properties": {"inner": {"$ref": "pulumi.json#/Any"}}
    },
    "comp:index:Teller": {
      "isComponent": true,
      "inputProperties": {"value": {"$ref": "pulumi.json#/Any"}, "hook": {"type": "boolean"}},
      "properties": {"told": {"type": "string"}, "asked": {"$ref": "pulumi.json#/Any"}, "seen": {"type": "string"}}
    }
  }
}`

// thing is the resource of the scripted provider.
type thing struct {
	pulumi.CustomResourceState
	Cid pulumi.StringOutput `pulumi:"cid"`
	Out pulumi.AnyOutput    `pulumi:"out"`
}

func newThing(ctx *pulumi.Context, name string, props pulumi.Map, options ...pulumi.ResourceOption) (*thing, error) {
	made := &thing{}
	return made, ctx.RegisterResource("rec:index:Thing", name, props, made, options...)
}

// pair is a component with two resources. The second depends on the first.
type pair struct {
	pulumi.ResourceState
	First pulumi.StringOutput `pulumi:"first"`
	Last  pulumi.AnyOutput    `pulumi:"last"`
}

type pairArgs struct {
	Value  pulumi.Input `pulumi:"value"`
	Secret pulumi.Input `pulumi:"secret"`
}

func newPair(ctx *pulumi.Context, name string, args *pairArgs, options ...pulumi.ResourceOption) (*pair, error) {
	made := &pair{}
	if err := ctx.RegisterComponentResource("comp:index:Pair", name, made, options...); err != nil {
		return nil, err
	}
	props := pulumi.Map{"v": args.Value}
	if args.Secret != nil {
		props["w"] = args.Secret
	}
	one, err := newThing(ctx, name+"-one", props, pulumi.Parent(made))
	if err != nil {
		return nil, err
	}
	two, err := newThing(ctx, name+"-two", pulumi.Map{"v": one.Out, "k": one.Cid}, pulumi.Parent(made))
	if err != nil {
		return nil, err
	}
	made.First, made.Last = one.Cid, two.Out
	return made, ctx.RegisterResourceOutputs(made, pulumi.Map{"first": made.First, "last": made.Last})
}

// nest is a component with a pair, and a resource that depends on the pair.
type nest struct {
	pulumi.ResourceState
	Inner pulumi.AnyOutput `pulumi:"inner"`
}

type nestArgs struct {
	Value pulumi.Input `pulumi:"value"`
}

func newNest(ctx *pulumi.Context, name string, args *nestArgs, options ...pulumi.ResourceOption) (*nest, error) {
	made := &nest{}
	if err := ctx.RegisterComponentResource("comp:index:Nest", name, made, options...); err != nil {
		return nil, err
	}
	inner, err := newPair(ctx, name+"-pair", &pairArgs{Value: args.Value}, pulumi.Parent(made))
	if err != nil {
		return nil, err
	}
	after := []pulumi.ResourceOption{
		pulumi.Parent(made), pulumi.DependsOn([]pulumi.Resource{inner}), pulumi.DeleteBeforeReplace(true),
	}
	if _, err := newThing(ctx, name+"-tail", pulumi.Map{"v": inner.Last}, after...); err != nil {
		return nil, err
	}
	made.Inner = inner.Last
	return made, ctx.RegisterResourceOutputs(made, pulumi.Map{"inner": made.Inner})
}

func construct(
	ctx *pulumi.Context, typ, name string, inputs provider.ConstructInputs, options pulumi.ResourceOption,
) (*provider.ConstructResult, error) {
	switch typ {
	case "comp:index:Pair":
		args := &pairArgs{}
		if err := inputs.CopyTo(args); err != nil {
			return nil, err
		}
		made, err := newPair(ctx, name, args, options)
		if err != nil {
			return nil, err
		}
		return provider.NewConstructResult(made)
	case "comp:index:Nest":
		args := &nestArgs{}
		if err := inputs.CopyTo(args); err != nil {
			return nil, err
		}
		made, err := newNest(ctx, name, args, options)
		if err != nil {
			return nil, err
		}
		return provider.NewConstructResult(made)
	case "comp:index:Teller":
		args := &tellerArgs{}
		if err := inputs.CopyTo(args); err != nil {
			return nil, err
		}
		made, err := newTeller(ctx, name, args, options)
		if err != nil {
			return nil, err
		}
		return provider.NewConstructResult(made)
	default:
		return nil, fmt.Errorf("there is no component %s", typ)
	}
}

// teller is a component that registers a remote pair, calls its method, invokes a function and reads a resource.
type teller struct {
	pulumi.ResourceState
	Told  pulumi.StringOutput `pulumi:"told"`
	Asked pulumi.AnyOutput    `pulumi:"asked"`
	Seen  pulumi.StringOutput `pulumi:"seen"`
}

type tellerArgs struct {
	Value pulumi.Input `pulumi:"value"`
	Hook  bool         `pulumi:"hook"`
}

func newTeller(ctx *pulumi.Context, name string, args *tellerArgs, options ...pulumi.ResourceOption) (*teller, error) {
	made := &teller{}
	if err := ctx.RegisterComponentResource("comp:index:Teller", name, made, options...); err != nil {
		return nil, err
	}
	child := []pulumi.ResourceOption{pulumi.Parent(made)}
	if args.Hook {
		hook, err := ctx.RegisterResourceHook("hook", func(*pulumi.ResourceHookArgs) error { return nil }, nil)
		if err != nil {
			return nil, err
		}
		binding := pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{hook}}
		child = append(child, pulumi.ResourceHooks(&binding))
	}
	far := &pair{}
	props := pulumi.Map{"value": args.Value}
	if err := ctx.RegisterRemoteComponentResource("comp:index:Pair", name+"-pair", props, far, child...); err != nil {
		return nil, err
	}
	told, err := ctx.Call("comp:index:Pair/describe", pulumi.Map{"greeting": pulumi.String("hello")}, describedOutput{}, far)
	if err != nil {
		return nil, err
	}
	made.Told = told.(describedOutput).ApplyT(func(d described) string { return d.Text }).(pulumi.StringOutput)
	answer := map[string]any{}
	if err := ctx.Invoke("rec:index:get", map[string]any{"v": 5}, &answer); err != nil {
		return nil, err
	}
	made.Asked = pulumi.Any(answer["result"])
	seen := &thing{}
	if err := ctx.ReadResource("rec:index:Thing", name+"-seen", pulumi.ID("elsewhere"), nil, seen, pulumi.Parent(made)); err != nil {
		return nil, err
	}
	made.Seen = seen.Cid
	return made, ctx.RegisterResourceOutputs(made, pulumi.Map{"told": made.Told, "asked": made.Asked, "seen": made.Seen})
}

// described is the result of the method of a pair.
type described struct {
	Text string `pulumi:"text"`
}

type describedOutput struct{ *pulumi.OutputState }

func (describedOutput) ElementType() reflect.Type { return reflect.TypeOf(described{}) }

type describedResult struct {
	Text pulumi.StringOutput `pulumi:"text"`
}

func call(_ *pulumi.Context, tok string, args provider.CallArgs) (*provider.CallResult, error) {
	if tok != "comp:index:Pair/describe" {
		return nil, fmt.Errorf("there is no method %s", tok)
	}
	given := struct {
		Greeting pulumi.StringInput `pulumi:"greeting"`
	}{}
	self, err := args.CopyTo(&given)
	if err != nil {
		return nil, err
	}
	last := self.(*pair).Last
	text := pulumi.All(given.Greeting, last).ApplyT(func(parts []any) string {
		return fmt.Sprintf("%v, %v", parts[0], parts[1])
	}).(pulumi.StringOutput)
	return provider.NewCallResult(&describedResult{Text: text})
}

// module converts a resource reference to a resource, with the state in the engine.
type module struct{}

func (module) Version() semver.Version { return semver.Version{Major: 1} }

func (module) Construct(ctx *pulumi.Context, name, typ, urn string) (pulumi.Resource, error) {
	made := &pair{}
	return made, ctx.RegisterResource(typ, name, nil, made, pulumi.URN_(urn))
}

// server is the part of a provider that components need.
type server struct {
	rpc.UnimplementedResourceProviderServer
	engine *grpc.ClientConn
}

func (s *server) GetPluginInfo(context.Context, *emptypb.Empty) (*rpc.PluginInfo, error) {
	return &rpc.PluginInfo{Version: "1.0.0"}, nil
}

func (s *server) GetSchema(context.Context, *rpc.GetSchemaRequest) (*rpc.GetSchemaResponse, error) {
	return &rpc.GetSchemaResponse{Schema: schema}, nil
}

func (s *server) Configure(context.Context, *rpc.ConfigureRequest) (*rpc.ConfigureResponse, error) {
	return &rpc.ConfigureResponse{
		AcceptSecrets: true, SupportsPreview: true, AcceptResources: true, AcceptOutputs: true,
	}, nil
}

func (s *server) Construct(ctx context.Context, req *rpc.ConstructRequest) (*rpc.ConstructResponse, error) {
	return provider.Construct(ctx, req, s.engine, construct)
}

func (s *server) Call(ctx context.Context, req *rpc.CallRequest) (*rpc.CallResponse, error) {
	return provider.Call(ctx, req, s.engine, call)
}

func (s *server) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("one argument is needed: the address of the engine")
	}
	pulumi.RegisterResourceModule("comp", "index", module{})
	engine, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	running := grpc.NewServer(grpc.MaxRecvMsgSize(400 << 20))
	rpc.RegisterResourceProviderServer(running, &server{engine: engine})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() { <-ctx.Done(); running.Stop() }()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	return running.Serve(listener)
}
