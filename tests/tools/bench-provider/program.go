package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

const providerPrefix = "pulumi:providers:"

// written is a program that is a file: what it registers, in this order. See the README for its form.
type written struct {
	Resources []json.RawMessage
	Outputs   json.RawMessage
}

// registration is what an entry may say besides the members of a RegisterResourceRequest.
type registration struct {
	Custom  *bool
	Migrate map[string]string
}

// runWritten registers the resources of a file below the stack, one after the other, and then the stack's outputs.
func runWritten(
	ctx context.Context, req *pulumirpc.RunRequest, mon pulumirpc.ResourceMonitorClient, stack, file string,
) error {
	text, err := os.ReadFile(filepath.Join(req.Pwd, file))
	if err != nil {
		return err
	}
	var program written
	if err := json.Unmarshal(text, &program); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	calls, err := serveCallbacks()
	if err != nil {
		return err
	}
	defer close(calls.done)
	providers, hooks := map[string]string{}, map[string]bool{}
	for _, entry := range program.Resources {
		var more registration
		if err := json.Unmarshal(entry, &more); err != nil {
			return err
		}
		r := &pulumirpc.RegisterResourceRequest{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(entry, r); err != nil {
			return err
		}
		if r.Type == "" {
			r.Type = itemType
		}
		r.Custom = more.Custom == nil || *more.Custom
		if r.Parent == "" {
			r.Parent = stack
		}
		if own, ok := providers[r.Provider]; ok {
			r.Provider = own
		}
		for _, name := range hookNames(r.Hooks) {
			if hooks[name] {
				continue
			}
			hooks[name] = true
			hook := &pulumirpc.RegisterResourceHookRequest{Name: name, Callback: calls.of("hook")}
			if _, err := mon.RegisterResourceHook(ctx, hook); err != nil {
				return err
			}
		}
		if len(more.Migrate) > 0 {
			edits, err := json.Marshal(more.Migrate)
			if err != nil {
				return err
			}
			r.StateMigrations = append(r.StateMigrations, calls.of(string(edits)))
		}
		r.AcceptSecrets, r.AcceptResources, r.SupportsPartialValues = true, true, true
		r.AcceptsByteString = true
		done, err := mon.RegisterResource(ctx, r)
		if err != nil {
			return err
		}
		if strings.HasPrefix(r.Type, providerPrefix) {
			providers[r.Name] = done.Urn + "::" + done.Id
		}
	}
	outputs := &structpb.Struct{}
	if len(program.Outputs) > 0 {
		err = protojson.Unmarshal(program.Outputs, outputs)
	}
	if err != nil {
		return err
	}
	_, err = mon.RegisterResourceOutputs(ctx, &pulumirpc.RegisterResourceOutputsRequest{Urn: stack, Outputs: outputs})
	if err == nil { // here, as hooks are called until then
		_, _ = mon.SignalAndWaitForShutdown(ctx, &emptypb.Empty{})
	}
	return err
}

func hookNames(h *pulumirpc.RegisterResourceRequest_ResourceHooksBinding) []string {
	var names []string
	for _, some := range [][]string{
		h.GetBeforeCreate(), h.GetAfterCreate(), h.GetBeforeUpdate(), h.GetAfterUpdate(),
		h.GetBeforeDelete(), h.GetAfterDelete(),
	} {
		names = append(names, some...)
	}
	return names
}

// callbacks is what the engine calls back: hooks, which do nothing, and migrations of states.
type callbacks struct {
	pulumirpc.UnimplementedCallbacksServer
	target string
	done   chan bool
}

func serveCallbacks() (*callbacks, error) {
	c := &callbacks{done: make(chan bool)}
	h, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Cancel: c.done,
		Init: func(s *grpc.Server) error {
			pulumirpc.RegisterCallbacksServer(s, c)
			return nil
		},
	})
	if err == nil {
		c.target = fmt.Sprintf("127.0.0.1:%d", h.Port)
	}
	return c, err
}

// of is a callback; its token says all that there is to know: "hook", or the replacements of a migration as JSON.
func (c *callbacks) of(token string) *pulumirpc.Callback {
	return &pulumirpc.Callback{Target: c.target, Token: token, AcceptsByteString: true}
}

func (c *callbacks) Invoke(
	_ context.Context, r *pulumirpc.CallbackInvokeRequest,
) (*pulumirpc.CallbackInvokeResponse, error) {
	var answer proto.Message = &pulumirpc.ResourceHookResponse{}
	if r.Token != "hook" {
		var edits map[string]string
		if err := json.Unmarshal([]byte(r.Token), &edits); err != nil {
			return nil, err
		}
		var old pulumirpc.StateMigrationRequest
		if err := proto.Unmarshal(r.Request, &old); err != nil {
			return nil, err
		}
		state := string(old.OldState)
		for from, to := range edits {
			state = strings.ReplaceAll(state, from, to)
		}
		answer = &pulumirpc.StateMigrationResponse{NewState: []byte(state)}
	}
	bytes, err := proto.Marshal(answer)
	return &pulumirpc.CallbackInvokeResponse{Response: bytes}, err
}
