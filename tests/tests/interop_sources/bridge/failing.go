// Terraform provider on the official framework, whose calls end with a gRPC error where its configuration says so. It serves protocol 6, or 5 without
// such errors.
package main

import (
	"context"
	"log"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	provider_schema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// protocol is set by the linker.
var protocol = "6"

// fails is the call that ends with an error, and the number of the code: `apply 13`.
var fails atomic.Value

func failure(call string) error {
	configured, _ := fails.Load().(string)
	name, number, _ := strings.Cut(configured, " ")
	code, err := strconv.ParseUint(number, 10, 32)
	if name != call || err != nil {
		return nil
	}
	return status.Error(codes.Code(code), "the reef does not answer")
}

// server is the server of the framework, with failures of a connection, which the framework cannot express.
type server struct{ tfprotov6.ProviderServer }

func (s server) ApplyResourceChange(
	ctx context.Context, request *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	if err := failure("apply"); err != nil {
		return nil, err
	}
	return s.ProviderServer.ApplyResourceChange(ctx, request)
}

func (s server) ReadResource(
	ctx context.Context, request *tfprotov6.ReadResourceRequest,
) (*tfprotov6.ReadResourceResponse, error) {
	if err := failure("read"); err != nil {
		return nil, err
	}
	return s.ProviderServer.ReadResource(ctx, request)
}

func (s server) PlanResourceChange(
	ctx context.Context, request *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	if err := failure("plan"); err != nil {
		return nil, err
	}
	return s.ProviderServer.PlanResourceChange(ctx, request)
}

type failing struct{}

func (failing) Metadata(_ context.Context, _ provider.MetadataRequest, reply *provider.MetadataResponse) {
	reply.TypeName = "failing"
}

func (failing) Schema(_ context.Context, _ provider.SchemaRequest, reply *provider.SchemaResponse) {
	reply.Schema = provider_schema.Schema{
		Attributes: map[string]provider_schema.Attribute{"fails": provider_schema.StringAttribute{Optional: true}},
	}
}

func (failing) Configure(ctx context.Context, request provider.ConfigureRequest, reply *provider.ConfigureResponse) {
	var config struct {
		Fails types.String `tfsdk:"fails"`
	}
	reply.Diagnostics.Append(request.Config.Get(ctx, &config)...)
	fails.Store(config.Fails.ValueString())
}

func (failing) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (failing) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return thing{} }}
}

type thing struct{}

type thingState struct {
	ID    types.String `tfsdk:"id"`
	Value types.String `tfsdk:"value"`
}

func (thing) Metadata(_ context.Context, _ resource.MetadataRequest, reply *resource.MetadataResponse) {
	reply.TypeName = "failing_thing"
}

func (thing) Schema(_ context.Context, _ resource.SchemaRequest, reply *resource.SchemaResponse) {
	kept := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	reply.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":    schema.StringAttribute{Computed: true, PlanModifiers: kept},
		"value": schema.StringAttribute{Required: true},
	}}
}

func (thing) Create(ctx context.Context, request resource.CreateRequest, reply *resource.CreateResponse) {
	var planned thingState
	reply.Diagnostics.Append(request.Plan.Get(ctx, &planned)...)
	planned.ID = types.StringValue("thing-1")
	reply.Diagnostics.Append(reply.State.Set(ctx, &planned)...)
}

func (thing) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

func (thing) Update(ctx context.Context, request resource.UpdateRequest, reply *resource.UpdateResponse) {
	var planned thingState
	reply.Diagnostics.Append(request.Plan.Get(ctx, &planned)...)
	reply.Diagnostics.Append(reply.State.Set(ctx, &planned)...)
}

func (thing) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

func main() {
	const address = "registry.opentofu.org/acme/failing"
	serve := func() tfprotov6.ProviderServer { return server{providerserver.NewProtocol6(failing{})()} }
	var err error
	if protocol == "5" {
		err = tf5server.Serve(address, providerserver.NewProtocol5(failing{}))
	} else {
		err = tf6server.Serve(address, serve)
	}
	if err != nil {
		log.Fatal(err)
	}
}
