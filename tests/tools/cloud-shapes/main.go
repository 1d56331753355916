// Command cloud-shapes prints, as JSON, what the official client package of Pulumi Cloud can ask for and what it takes as an answer:
// each operation with its method and its path, and the shapes of all JSON that goes either way.
//
// The package does not export its paths, so each of its methods is called once, with an executor that only looks.
package main

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"

	"github.com/pulumi/pulumi-cloud-sdk/go/apiclient"
)

// operation is one call that the client can make. A parameter of its path is {}.
type operation struct {
	Name   string `json:"name"`
	Method string `json:"method"`
	Path   string `json:"path"`
	// Request and Answer are the shapes of the bodies; nil where there is none.
	Request *shape `json:"request,omitempty"`
	Answer  *shape `json:"answer,omitempty"`
}

// shape is a kind of JSON. One that is named stands under its name in the document.
type shape struct {
	// Kind is "any", "boolean", "number", "integer", "string", "array", "map", "object", or "named".
	Kind string `json:"kind"`
	// Nullable says that null may stand for it.
	Nullable bool `json:"nullable,omitempty"`
	// Of is the shape of what is in an array or a map.
	Of *shape `json:"of,omitempty"`
	// Name is that of a shape that is named.
	Name string `json:"name,omitempty"`
	// Members are those of an object.
	Members map[string]member `json:"members,omitempty"`
}

type member struct {
	shape
	// Optional says that the client does not write it where it has nothing to say.
	Optional bool `json:"optional,omitempty"`
}

const (
	text   = "a-text"
	number = 987654321
)

// errSeen ends each call before a request is sent.
var errSeen = errors.New("seen")

var (
	contextType = reflect.TypeFor[context.Context]()
	headersType = reflect.TypeFor[[]http.Header]()
	errorType   = reflect.TypeFor[error]()
)

func main() {
	shapes := shapes{named: map[string]shape{}}
	var operations []operation
	var seen *http.Request
	client := reflect.ValueOf(&apiclient.CloudClient{
		BaseURL: "http://cloud",
		Executor: func(request *http.Request) (*http.Response, error) {
			seen = request
			return nil, errSeen
		},
	})
	for i := range client.NumMethod() {
		method := client.Type().Method(i)
		seen = nil
		request := call(client.Method(i))
		if seen == nil {
			fmt.Fprintf(os.Stderr, "%s asks for nothing\n", method.Name)
			os.Exit(1)
		}
		path := strings.ReplaceAll(strings.ReplaceAll(seen.URL.Path, text, "{}"), fmt.Sprint(number), "{}")
		found := operation{Name: method.Name, Method: seen.Method, Path: path}
		if request != nil {
			found.Request = shapes.of(request)
		}
		if first := method.Type.Out(0); first != errorType {
			found.Answer = shapes.of(first)
		}
		operations = append(operations, found)
	}
	err := json.NewEncoder(os.Stdout).Encode(map[string]any{"operations": operations, "shapes": shapes.named})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// call calls a method of the client and returns the type of the body that it takes: the last parameter that is a struct. Queries are
// pointers.
func call(method reflect.Value) (body reflect.Type) {
	var arguments []reflect.Value
	for i := range method.Type().NumIn() {
		in := method.Type().In(i)
		value := reflect.New(in).Elem()
		switch {
		case in == contextType:
			value = reflect.ValueOf(context.Background())
		case in == headersType:
			continue // The rest, of which there is none.
		case in.Kind() == reflect.String:
			value.SetString(text)
		case value.CanInt():
			value.SetInt(number)
		case in.Kind() == reflect.Struct || in.Kind() == reflect.Slice || in.Kind() == reflect.Map:
			body = in
		}
		arguments = append(arguments, value)
	}
	method.Call(arguments)
	return body
}

// shapes collects those that have a name.
type shapes struct{ named map[string]shape }

func (s shapes) of(t reflect.Type) *shape {
	switch {
	case t.Kind() == reflect.Pointer:
		under := *s.of(t.Elem())
		under.Nullable = true
		return &under
	case t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface:
		return &shape{Kind: "any", Nullable: true}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return &shape{Kind: "string"}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()):
		// It writes itself, as it likes.
		return &shape{Kind: "any"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &shape{Kind: "boolean"}
	case reflect.Float32, reflect.Float64:
		return &shape{Kind: "number"}
	case reflect.String:
		return &shape{Kind: "string"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &shape{Kind: "string"} // Base64.
		}
		return &shape{Kind: "array", Of: s.of(t.Elem()), Nullable: true}
	case reflect.Map:
		return &shape{Kind: "map", Of: s.of(t.Elem()), Nullable: true}
	case reflect.Struct:
		name := t.String()
		if _, known := s.named[name]; !known {
			s.named[name] = shape{} // It may hold itself.
			s.named[name] = shape{Kind: "object", Members: s.members(t)}
		}
		return &shape{Kind: "named", Name: name}
	default:
		return &shape{Kind: "integer"}
	}
}

func (s shapes) members(t reflect.Type) map[string]member {
	members := map[string]member{}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			under := field.Type
			if under.Kind() == reflect.Pointer {
				under = under.Elem()
			}
			for name, member := range s.members(under) {
				members[name] = member
			}
			continue
		case name == "-" || !field.IsExported():
			continue
		case name == "":
			name = field.Name
		}
		members[name] = member{shape: *s.of(field.Type), Optional: strings.Contains(options, "omit")}
	}
	return members
}
