package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

const viewType = "bench:index:View"

// publishViews tells the engine that an item's views are now as many as its input `views` says, each with the item's
// value; none if there is no item any more.
func publishViews(
	ctx context.Context, address, token, name string, old []*pulumirpc.View, in *structpb.Struct,
) error {
	count := int(num(in, "views"))
	if count == 0 && len(old) == 0 {
		return nil
	}
	var steps []*pulumirpc.ViewStep
	for i := range max(count, len(old)) {
		step := &pulumirpc.ViewStep{
			Status: pulumirpc.ViewStep_OK, Type: viewType, Name: fmt.Sprintf("%s-view-%d", name, i),
		}
		if i < len(old) {
			step.Name = old[i].Name
			step.Old = &pulumirpc.ViewStepState{
				Type: old[i].Type, Name: old[i].Name, Inputs: old[i].Inputs, Outputs: old[i].Outputs,
			}
			step.Op = pulumirpc.ViewStep_DELETE
		}
		if i < count {
			seen := &structpb.Struct{Fields: map[string]*structpb.Value{"of": structpb.NewStringValue(name)}}
			if v, ok := in.GetFields()["value"]; ok {
				seen.Fields["value"] = v
			}
			step.New = &pulumirpc.ViewStepState{Type: viewType, Name: step.Name, Inputs: seen, Outputs: seen}
			step.Op = pulumirpc.ViewStep_CREATE
			if i < len(old) {
				step.Op = pulumirpc.ViewStep_UPDATE
			}
		}
		steps = append(steps, step)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = pulumirpc.NewResourceStatusClient(conn).PublishViewSteps(
		ctx, &pulumirpc.PublishViewStepsRequest{Token: token, Steps: steps})
	return err
}
