package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// packed lists the properties that are assets and archives, which are compared by their hashes.
var packed = []string{"file", "files"}

// kept lists the properties that are stored in the file of a resource.
var kept = []string{"v", "k", "secret"}

const schema = `{
  "name": "peergo", "version": "1.0.0",
  "resources": {"peergo:index:Thing": {
    "inputProperties": {
      "v": {"type": "string"}, "k": {"type": "string", "willReplaceOnChanges": true},
      "secret": {"type": "string", "secret": true}, "delay": {"type": "number"},
      "parts": {"type": "string"},
      "file": {"$ref": "pulumi.json#/Asset"}, "files": {"$ref": "pulumi.json#/Archive"}
    },
    "properties": {
      "v": {"type": "string"}, "k": {"type": "string"}, "secret": {"type": "string", "secret": true},
      "delay": {"type": "number"}, "parts": {"type": "string"}, "out": {"type": "string"},
      "file": {"$ref": "pulumi.json#/Asset"}, "files": {"$ref": "pulumi.json#/Archive"}
    }
  }, "peergo:index/smallThing:SmallThing": {
    "inputProperties": {"v": {"type": "string"}},
    "properties": {"v": {"type": "string"}, "out": {"type": "string"}}
  }, "peergo:sea/thing:Thing": {
    "inputProperties": {"v": {"type": "string"}},
    "properties": {"v": {"type": "string"}, "out": {"type": "string"}}
  }}
}`

type things struct {
	rpc.UnimplementedResourceProviderServer
	home string
	// failed holds the calls that have failed as busy.
	failed sync.Map
}

// failOnce fails the first of the calls whose property is "busy".
func (t *things) failOnce(call string, bag *structpb.Struct, key string) error {
	if text(bag, key) != "busy" {
		return nil
	}
	if _, hasFailed := t.failed.LoadOrStore(call, true); hasFailed {
		return nil
	}
	return busy(call+" must wait", 100*time.Millisecond)
}

func (t *things) Handshake(context.Context, *rpc.ProviderHandshakeRequest) (*rpc.ProviderHandshakeResponse, error) {
	defer t.note(call{Call: "Handshake"})()
	return &rpc.ProviderHandshakeResponse{AcceptSecrets: true, AcceptResources: true, AcceptOutputs: true}, nil
}

// Attach may be called after the start by a debugger. The provider calls no Engine, so it needs no address of one.
func (t *things) Attach(context.Context, *rpc.PluginAttach) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (t *things) GetPluginInfo(context.Context, *emptypb.Empty) (*rpc.PluginInfo, error) {
	return &rpc.PluginInfo{Version: "1.0.0"}, nil
}

func (t *things) GetSchema(context.Context, *rpc.GetSchemaRequest) (*rpc.GetSchemaResponse, error) {
	return &rpc.GetSchemaResponse{Schema: schema}, nil
}

func (t *things) CheckConfig(_ context.Context, in *rpc.CheckRequest) (*rpc.CheckResponse, error) {
	return &rpc.CheckResponse{Inputs: in.News}, nil
}

func (t *things) DiffConfig(context.Context, *rpc.DiffRequest) (*rpc.DiffResponse, error) {
	return &rpc.DiffResponse{Changes: rpc.DiffResponse_DIFF_NONE}, nil
}

func (t *things) Configure(context.Context, *rpc.ConfigureRequest) (*rpc.ConfigureResponse, error) {
	defer t.note(call{Call: "Configure"})()
	return &rpc.ConfigureResponse{
		AcceptSecrets: true, AcceptResources: true, AcceptOutputs: true, SupportsPreview: true,
	}, nil
}

func (t *things) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (t *things) Check(_ context.Context, in *rpc.CheckRequest) (*rpc.CheckResponse, error) {
	if err := t.failOnce("Check", in.News, "v"); err != nil {
		return nil, err
	}
	if text(in.News, "v") == "bad" {
		return nil, invalid("the thing is refused", "v", "must be good")
	}
	defer t.note(call{Call: "Check", Name: in.Name, Secret: how(in.News)})()
	answer := &rpc.CheckResponse{Inputs: in.News}
	if _, given := in.News.GetFields()["v"]; !given {
		answer.Failures = []*rpc.CheckFailure{{Property: "v", Reason: "missing required input v"}}
	}
	return answer, nil
}

func (t *things) Diff(_ context.Context, in *rpc.DiffRequest) (*rpc.DiffResponse, error) {
	defer t.note(call{Call: "Diff", Name: in.Name, ID: in.Id, Secret: how(in.News)})()
	answer := &rpc.DiffResponse{
		Changes: rpc.DiffResponse_DIFF_NONE, HasDetailedDiff: true, DetailedDiff: map[string]*rpc.PropertyDiff{},
	}
	for _, key := range kept {
		if text(in.Olds, key) == text(in.News, key) || slices.Contains(in.IgnoreChanges, key) {
			continue
		}
		kind := rpc.PropertyDiff_UPDATE
		if key == "k" {
			kind = rpc.PropertyDiff_UPDATE_REPLACE
			answer.Replaces = append(answer.Replaces, key)
		}
		answer.Changes = rpc.DiffResponse_DIFF_SOME
		answer.Diffs = append(answer.Diffs, key)
		answer.DetailedDiff[key] = &rpc.PropertyDiff{Kind: kind}
	}
	for _, key := range packed {
		if hash(in.Olds, key) != hash(in.News, key) {
			answer.Changes = rpc.DiffResponse_DIFF_SOME
			answer.Diffs = append(answer.Diffs, key)
			answer.DetailedDiff[key] = &rpc.PropertyDiff{Kind: rpc.PropertyDiff_UPDATE}
		}
	}
	return answer, nil
}

func (t *things) Create(ctx context.Context, in *rpc.CreateRequest) (*rpc.CreateResponse, error) {
	id := ""
	if !in.Preview {
		id = in.Name + "-" + randomID()
	}
	defer t.note(call{Call: "Create", Name: in.Name, ID: id, Preview: in.Preview, Secret: how(in.Properties)})()
	if !in.Preview {
		time.Sleep(time.Duration(in.Properties.GetFields()["delay"].GetNumberValue()) * time.Millisecond)
		if err := t.keep(id, in.Properties); err != nil {
			return nil, err
		}
	}
	if err := show(ctx, in, nil, in.Properties); err != nil {
		return nil, err
	}
	return &rpc.CreateResponse{Id: id, Properties: outputs(in.Properties)}, nil
}

func (t *things) Read(ctx context.Context, in *rpc.ReadRequest) (*rpc.ReadResponse, error) {
	defer t.note(call{Call: "Read", Name: in.Name, ID: in.Id, Secret: how(in.Properties)})()
	live, err := t.load(in.Id)
	if errors.Is(err, fs.ErrNotExist) {
		return &rpc.ReadResponse{}, nil
	} else if err != nil {
		return nil, err
	}
	inputs := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for key, value := range in.Inputs.GetFields() {
		inputs.Fields[key] = value
	}
	for key, value := range live {
		inputs.Fields[key] = structpb.NewStringValue(value)
		if key == "secret" {
			inputs.Fields[key] = secret(value)
		}
	}
	if err := show(ctx, in, in.OldViews, inputs); err != nil {
		return nil, err
	}
	return &rpc.ReadResponse{Id: in.Id, Properties: outputs(inputs), Inputs: inputs}, nil
}

func (t *things) Update(ctx context.Context, in *rpc.UpdateRequest) (*rpc.UpdateResponse, error) {
	defer t.note(call{Call: "Update", Name: in.Name, ID: in.Id, Preview: in.Preview, Secret: how(in.News)})()
	if !in.Preview {
		if err := t.keep(in.Id, in.News); err != nil {
			return nil, err
		}
	}
	if err := show(ctx, in, in.OldViews, in.News); err != nil {
		return nil, err
	}
	return &rpc.UpdateResponse{Properties: outputs(in.News)}, nil
}

func (t *things) Delete(ctx context.Context, in *rpc.DeleteRequest) (*emptypb.Empty, error) {
	if err := t.failOnce("Delete", in.Properties, "k"); err != nil {
		return nil, err
	}
	defer t.note(call{Call: "Delete", Name: in.Name, ID: in.Id, Secret: how(in.Properties)})()
	if err := show(ctx, in, in.OldViews, nil); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, os.Remove(t.path(in.Id))
}

// outputs returns the inputs and "out", which is unknown if "v" is unknown.
func outputs(inputs *structpb.Struct) *structpb.Struct {
	result := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for key, value := range inputs.GetFields() {
		result.Fields[key] = value
	}
	out := unknown
	if v := text(inputs, "v"); v != unknown {
		out = "made of " + v
	}
	result.Fields["out"] = structpb.NewStringValue(out)
	return result
}

func (t *things) path(id string) string { return t.home + "/things/" + id + ".json" }

func (t *things) keep(id string, bag *structpb.Struct) error {
	live := map[string]string{}
	for _, key := range kept {
		if _, given := bag.GetFields()[key]; given {
			live[key] = text(bag, key)
		}
	}
	content, err := json.Marshal(live)
	if err != nil {
		return err
	}
	return os.WriteFile(t.path(id), content, 0o644)
}

func (t *things) load(id string) (map[string]string, error) {
	content, err := os.ReadFile(t.path(id))
	if err != nil {
		return nil, err
	}
	live := map[string]string{}
	return live, json.Unmarshal(content, &live)
}

func randomID() string {
	bytes := make([]byte, 4)
	rand.Read(bytes)
	return strings.ToLower(hex.EncodeToString(bytes))
}
