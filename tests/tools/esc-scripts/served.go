package cli

// Copied into the package of the `esc` CLI, as a test file: its published scripts then speak to a real server.

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"

	"github.com/pulumi/pulumi/pkg/v3/cmd/esc/cli/client"
	"github.com/pulumi/pulumi/sdk/v3/go/common/esc/eval"
)

// What differs from run to run, or is the stand-in's own in the published scripts: what is sealed, and who did what when.
var varying = regexp.MustCompile(
	`ciphertext: \S+|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC|by (<unknown>|\S+ <\S+>)|Author: .*|by Test Tester <\S+>`)

func steady(text string) string {
	return varying.ReplaceAllString(text, "...")
}

func served() client.Client {
	return client.New("esc-scripts", os.Getenv("STATEWRIGHT_URL"), os.Getenv("STATEWRIGHT_TOKEN"), true)
}

// seed makes the environments of a script on the server, and removes all others.
func seed(environments map[string]*testEnvironment) {
	ctx, c := context.Background(), served()
	for token, more := "", true; more; {
		listed, next, err := c.ListEnvironments(ctx, token)
		if err != nil {
			panic(err)
		}
		for _, e := range listed {
			open := false
			settings := client.PatchEnvironmentSettingsRequest{DeletionProtected: &open}
			_ = c.PatchEnvironmentSettings(ctx, e.Organization, e.Project, e.Name, settings)
			if err := c.DeleteEnvironment(ctx, e.Organization, e.Project, e.Name); err != nil {
				panic(err)
			}
		}
		token, more = next, next != ""
	}
	var names []string
	for name := range environments {
		names = append(names, name)
	}
	slices.Sort(names)
	// What is imported has to be there first.
	for range names {
		var left []string
		for _, name := range names {
			if err := make1(ctx, c, name, environments[name]); err != nil {
				fmt.Printf("seed: %s: %v\n", name, err)
				left = append(left, name)
			}
		}
		names = left
	}
}

func make1(ctx context.Context, c client.Client, name string, e *testEnvironment) error {
	var org, project, env string
	if n, err := fmt.Sscanf(spaced(name), "%s %s %s", &org, &project, &env); n != 3 {
		return fmt.Errorf("not the name of an environment: %w", err)
	}
	_ = c.DeleteEnvironment(ctx, org, project, env)
	if err := c.CreateEnvironment(ctx, org, project, env); err != nil {
		return err
	}
	for _, r := range e.revisions[1:] {
		// Its secrets are sealed with the cipher of the published cases.
		text := r.yaml
		if bytes.Contains(text, []byte("ciphertext:")) {
			if plain, err := eval.DecryptSecrets(ctx, env, text, rot128{}); err == nil {
				text = plain
			}
		}
		diags, _, err := c.UpdateEnvironment(ctx, org, project, env, text, "")
		if err != nil {
			return err
		}
		if client.DiagnosticsHaveErrors(diags) {
			return fmt.Errorf("%v", diags)
		}
		for tag := range r.tags {
			if err := c.CreateEnvironmentRevisionTag(ctx, org, project, env, tag, &r.number); err != nil {
				return err
			}
		}
	}
	for _, r := range e.revisions[1:] {
		if r.retracted != nil {
			version := fmt.Sprint(r.number)
			err := c.RetractEnvironmentRevision(ctx, org, project, env, version, &r.retracted.replacement, r.retracted.reason)
			if err != nil {
				return err
			}
		}
	}
	for key, value := range e.tags {
		if _, err := c.CreateEnvironmentTag(ctx, org, project, env, key, value); err != nil {
			return err
		}
	}
	return nil
}

func spaced(name string) string {
	out := []byte(name)
	for i, b := range out {
		if b == '/' {
			out[i] = ' '
		}
	}
	return string(out)
}
