// Command esc-oracle answers what the evaluator that Pulumi publishes makes of an environment: a question a line on the
// standard input, an answer a line on the standard output. See the README.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/hcl/v2"
	"github.com/pulumi/pulumi/sdk/v3/go/common/esc"
	"github.com/pulumi/pulumi/sdk/v3/go/common/esc/eval"
	"github.com/pulumi/pulumi/sdk/v3/go/common/esc/schema"
	"github.com/pulumi/pulumi/sdk/v3/go/common/esc/syntax"
)

type question struct {
	// Name is what the environment is called.
	Name string `json:"name"`
	// Text is its definition.
	Text string `json:"text"`
	// Envs are the definitions that it may import.
	Envs map[string]string `json:"envs"`
	// Context is what `context` holds, without the names of the environments.
	Context json.RawMessage `json:"context"`
	// ShowSecrets opens sealed secrets in a check.
	ShowSecrets bool `json:"showSecrets"`
	// Full asks for the environments as a client gets them, without schemas.
	Full bool `json:"full"`
}

type diagnostic struct {
	IsError     bool   `json:"isError"`
	Environment string `json:"environment"`
	Line        int    `json:"line"`
	Column      int    `json:"column"`
	Summary     string `json:"summary"`
}

type evaluated struct {
	Diagnostics []diagnostic     `json:"diagnostics,omitempty"`
	Value       any              `json:"value"`
	Environment *esc.Environment `json:"environment,omitempty"`
}

type answer struct {
	// Load is what is wrong with the text by itself.
	Load []diagnostic `json:"load,omitempty"`
	// IsRead says whether it could be read at all. If not, there is nothing else.
	IsRead bool       `json:"isRead"`
	Check  *evaluated `json:"check,omitempty"`
	Open   *evaluated `json:"open,omitempty"`
	Panic  string     `json:"panic,omitempty"`
}

// rot128 is the cipher of the published cases, with four bytes behind each text: an envelope around less than that is refused.
type rot128 struct{}

func (rot128) Decrypt(_ context.Context, ciphertext []byte) ([]byte, error) {
	for i := range ciphertext {
		ciphertext[i] += 128
	}
	return bytes.TrimSuffix(ciphertext, make([]byte, 4)), nil
}

// echo answers what it is asked with, as a secret or not.
type echo struct{ isSecret bool }

func (echo) Schema() (*schema.Schema, *schema.Schema) { return schema.Always(), schema.Always() }

func (p echo) Open(_ context.Context, inputs map[string]esc.Value, _ esc.EnvExecContext) (esc.Value, error) {
	return esc.Value{Value: inputs, Secret: p.isSecret}, nil
}

type providers struct{}

func (providers) LoadProvider(_ context.Context, name string) (esc.Provider, error) {
	switch name {
	case "test":
		return echo{}, nil
	case "secret-wrapper":
		return echo{isSecret: true}, nil
	}
	return nil, fmt.Errorf("unknown provider %q", name)
}

func (providers) LoadRotator(_ context.Context, name string) (esc.Rotator, error) {
	return nil, fmt.Errorf("unknown rotator %q", name)
}

type environments map[string]string

func (e environments) LoadEnvironment(_ context.Context, name string) ([]byte, string, eval.Decrypter, error) {
	text, ok := e[name]
	if !ok {
		return nil, "", nil, errors.New("not found")
	}
	return []byte(text), name, rot128{}, nil
}

func (environments) AuthorizeImport(context.Context, string, string, bool) error { return nil }

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<26)
	out := bufio.NewWriter(os.Stdout)
	for in.Scan() {
		line, err := json.Marshal(ask(in.Bytes()))
		if err != nil {
			line, _ = json.Marshal(answer{Panic: err.Error()})
		}
		out.Write(append(line, '\n'))
		out.Flush()
	}
}

func ask(line []byte) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			a = answer{Panic: fmt.Sprint(r)}
		}
	}()
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		panic(err)
	}
	env, loaded, err := eval.LoadYAMLBytes(q.Name, []byte(q.Text))
	if err != nil {
		panic(err)
	}
	a.Load = told(loaded)
	if env == nil {
		return a
	}
	a.IsRead = true
	run := func(evaluate func(*esc.ExecContext) (*esc.Environment, syntax.Diagnostics)) *evaluated {
		env, diags := evaluate(execContext(q.Context))
		e := &evaluated{Diagnostics: told(diags)}
		if env != nil {
			e.Value = plainAll(env.Properties)
			if q.Full {
				withoutSchemas(env)
				e.Environment = env
			}
		}
		return e
	}
	ctx, opts := context.Background(), eval.EvalOptions{}
	a.Check = run(func(exec *esc.ExecContext) (*esc.Environment, syntax.Diagnostics) {
		return eval.CheckEnvironment(ctx, q.Name, env, rot128{}, providers{}, environments(q.Envs), exec, q.ShowSecrets, opts)
	})
	a.Open = run(func(exec *esc.ExecContext) (*esc.Environment, syntax.Diagnostics) {
		return eval.EvalEnvironment(ctx, q.Name, env, rot128{}, providers{}, environments(q.Envs), exec, opts)
	})
	return a
}

func execContext(text json.RawMessage) *esc.ExecContext {
	var read any
	if len(text) > 0 {
		if err := json.Unmarshal(text, &read); err != nil {
			panic(err)
		}
	}
	values, err := esc.FromJSON(read)
	if err != nil {
		panic(err)
	}
	of, _ := values.Value.(map[string]esc.Value)
	if of == nil {
		of = map[string]esc.Value{}
	}
	exec, err := esc.NewExecContext(of)
	if err != nil {
		panic(err)
	}
	return exec
}

func told(diags syntax.Diagnostics) []diagnostic {
	all := []diagnostic{}
	for _, d := range diags {
		one := diagnostic{IsError: d.Severity == hcl.DiagError, Summary: d.Summary}
		if d.Subject != nil {
			one.Environment, one.Line, one.Column = d.Subject.Filename, d.Subject.Start.Line, d.Subject.Start.Column
		}
		all = append(all, one)
	}
	return all
}

// plain is a value with secrets and unknowns marked, and without where it comes from.
func plain(v esc.Value) any {
	var bare any
	switch x := v.Value.(type) {
	case []esc.Value:
		items := []any{}
		for _, i := range x {
			items = append(items, plain(i))
		}
		bare = items
	case map[string]esc.Value:
		bare = plainAll(x)
	default:
		bare = x
	}
	if v.Unknown {
		bare = "[unknown]"
	}
	if v.Secret {
		return map[string]any{"<secret>": bare}
	}
	return bare
}

func plainAll(values map[string]esc.Value) map[string]any {
	members := map[string]any{}
	for k, i := range values {
		members[k] = plain(i)
	}
	return members
}

func withoutSchemas(env *esc.Environment) {
	env.Schema = nil
	env.ExecutionContext.Schema = nil
	for k, x := range env.Exprs {
		bare(&x)
		env.Exprs[k] = x
	}
}

func bare(x *esc.Expr) {
	x.Schema = nil
	if x.Base != nil {
		bare(x.Base)
	}
	for i := range x.List {
		bare(&x.List[i])
	}
	for k, o := range x.Object {
		bare(&o)
		x.Object[k] = o
	}
	if x.Builtin != nil {
		x.Builtin.ArgSchema = nil
		bare(&x.Builtin.Arg)
	}
}
