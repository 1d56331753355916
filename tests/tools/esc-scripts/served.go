package cli

// Copied into the package of the `esc` CLI, as a test file: its published scripts then speak to a real server.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/pulumi/pulumi/pkg/v3/cmd/esc/cli/client"
)

func served() client.Client {
	return client.New("esc-scripts", os.Getenv("STATEWRIGHT_URL"), os.Getenv("STATEWRIGHT_TOKEN"), true)
}

// steady takes out of a script's output what is the stand-in's own, and what differs from run to run.
func steady(text string) string {
	for _, one := range steadied {
		text = one.found.ReplaceAllString(text, one.becomes)
	}
	return text
}

var steadied = []struct {
	found   *regexp.Regexp
	becomes string
}{
	// What is sealed, and who did what when.
	{regexp.MustCompile(`ciphertext: \S+`), "ciphertext: ..."},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC`), "..."},
	{regexp.MustCompile(`by (<unknown>|\S+ <\S+>|Test Tester <\S+>)`), "by ..."},
	{regexp.MustCompile(`Author: .*`), "Author: ..."},
	{regexp.MustCompile(`(<unknown>|[\w-]+ <[\w-]+>) +│`), "... │"},
	{regexp.MustCompile(`EDITOR +│`), "EDITOR │"},
	{regexp.MustCompile(`─+`), "─"},
	// The environments that a script begins with have no name `latest` in the stand-in; one that it writes has.
	{regexp.MustCompile(` \(tag: latest\)`), ""},
	{regexp.MustCompile(`\(tags: latest, (\w+)\)`), "(tag: $1)"},
	// What the stand-in makes up in the place of the current revision, which is the fifth there.
	{regexp.MustCompile(`replaced with revision (42|5)\.`), "replaced with the current revision."},
	// Places are in an environment as it is imported there, and here in the one that this leads to.
	{regexp.MustCompile(`\bdefault/([\w-]+:\d+:\d+)`), "$1"},
	{regexp.MustCompile(`"environment": "default/`), "\"environment\": \""},
	// The words of a refusal are the service's, and the stand-in has no status: `not found` has to be a 404, `already exists` a 409.
	{regexp.MustCompile(`(environment|source env|tag|environment \S+/\S+) not found(: check its name)?`), "not found"},
	{regexp.MustCompile(`\[404\] .*`), "not found"},
	// The client's own words for a 404.
	{regexp.MustCompile(`environment \S+ does not exist; pass --create .*`), "getting environment definition: not found"},
	{regexp.MustCompile(`\[409\] .*`), "already exists"},
}

// seed makes the environments of a script on the server, and removes all others.
func seed(environments map[string]*testEnvironment) {
	type revision struct {
		Text      string   `json:"text"`
		Tags      []string `json:"tags"`
		Retracted *[2]any  `json:"retracted"`
	}
	type fixture struct {
		Revisions []revision        `json:"revisions"`
		Tags      map[string]string `json:"tags"`
	}
	fixtures := map[string]fixture{}
	for name, e := range environments {
		f := fixture{Tags: e.tags}
		for _, r := range e.revisions {
			written := revision{Text: string(r.yaml), Tags: []string{}}
			for tag := range r.tags {
				written.Tags = append(written.Tags, tag)
			}
			if r.retracted != nil {
				written.Retracted = &[2]any{r.retracted.replacement, r.retracted.reason}
			}
			f.Revisions = append(f.Revisions, written)
		}
		fixtures[name] = f
	}
	body, err := json.Marshal(fixtures)
	if err != nil {
		panic(err)
	}
	request, err := http.NewRequest(http.MethodPut, os.Getenv("STATEWRIGHT_FIXTURES"), bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		var why strings.Builder
		_ = answer.Write(&why)
		panic(fmt.Sprintf("the environments of a script were not taken: %s", why.String()))
	}
}
