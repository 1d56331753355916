// Command replay-oracle answers, for a base deployment and a list of journal
// entries, what the real Pulumi journal replayer makes of them. It is a test
// oracle: our own replayer must give the same answer.
//
// Usage:
//
//	replay-oracle replay [-service] [-prefixes] [-lines] [-pretty] [FILE]
//	replay-oracle gen    [-seed N] [-n COUNT] [-profile engine|wild] [-expect]
//	replay-oracle engine [-seed N] [-n COUNT] [-expect]
//	replay-oracle delta  [-lines] [FILE]
//	replay-oracle rename [FILE]
//	replay-oracle tags   [FILE]
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/resource/stack/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Case is one question to the oracle.
type Case struct {
	Name    string          `json:"name,omitempty"`
	Base    json.RawMessage `json:"base"`
	Entries json.RawMessage `json:"entries"`
}

// Answer is what the real replayer made of a Case.
type Answer struct {
	Name string `json:"name,omitempty"`
	// Error is set when the replayer refused an entry or could not generate a
	// deployment; Panic when it crashed (our server must then refuse, not crash).
	Error string `json:"error,omitempty"`
	Panic string `json:"panic,omitempty"`
	// At is the position, in replay order, of the entry that was refused, or -1 when
	// the failure came while generating the deployment.
	At int `json:"at"`

	Version    int             `json:"version,omitempty"`
	Features   []string        `json:"features,omitempty"`
	Deployment json.RawMessage `json:"deployment,omitempty"`
	// Integrity is empty when the CLI would accept the deployment, else why not.
	Integrity string `json:"integrity,omitempty"`
	// Suspect lists entries that name a resource which does not exist. The real
	// replayer takes them without a word and may then touch another resource; our
	// server may refuse them, so an answer with suspects need not be matched.
	Suspect []string `json:"suspect,omitempty"`
	// Drifted lists entries whose "...New" references the real replayer counts
	// wrongly: after a base that was rebuilt when resources had been made already, it
	// goes on counting positions from before. An engine never writes such a journal.
	Drifted []string `json:"drifted,omitempty"`
	// Prefixes holds, with -prefixes, the answer after each prefix of the journal
	// (0 entries, 1 entry, ...): what a crash at that point leaves behind.
	Prefixes []Answer `json:"prefixes,omitempty"`
}

func decodeBase(raw json.RawMessage) (*apitype.DeploymentV3, error) {
	base := &apitype.DeploymentV3{}
	if len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return base, nil
	}
	// Either a bare deployment or the {"version":..,"deployment":..} envelope.
	var envelope struct {
		Deployment json.RawMessage `json:"deployment"`
	}
	if err := json.Unmarshal(raw, &envelope); err != nil {
		return nil, err
	}
	if len(envelope.Deployment) != 0 {
		raw = envelope.Deployment
	}
	return base, json.Unmarshal(raw, base)
}

func decodeEntries(raw json.RawMessage) ([]apitype.JournalEntry, error) {
	// Either a bare list or the {"entries":[..]} body that the CLI sends.
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '{' {
		var body apitype.JournalEntries
		err := json.Unmarshal(raw, &body)
		return body.Entries, err
	}
	var entries []apitype.JournalEntry
	err := json.Unmarshal(raw, &entries)
	return entries, err
}

// asService puts entries in the order a service replays them: by sequence ID,
// each sequence ID once (the CLI re-sends a batch when an answer is lost).
func asService(entries []apitype.JournalEntry) []apitype.JournalEntry {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b apitype.JournalEntry) int {
		switch {
		case a.SequenceID < b.SequenceID:
			return -1
		case a.SequenceID > b.SequenceID:
			return 1
		}
		return 0
	})
	return slices.CompactFunc(sorted, func(a, b apitype.JournalEntry) bool {
		return a.SequenceID == b.SequenceID
	})
}

func replay(c Case, service bool, limit int) (ans Answer) {
	ans.Name = c.Name
	ans.At = -1
	at := -1
	defer func() {
		if p := recover(); p != nil {
			ans = Answer{Name: c.Name, At: at, Panic: fmt.Sprint(p)}
		}
	}()
	fail := func(err error) Answer {
		return Answer{Name: c.Name, At: at, Error: err.Error()}
	}

	// Decode again for every run: the replayer writes into what it is given.
	base, err := decodeBase(c.Base)
	if err != nil {
		return fail(fmt.Errorf("decoding base: %w", err))
	}
	entries, err := decodeEntries(c.Entries)
	if err != nil {
		return fail(fmt.Errorf("decoding entries: %w", err))
	}
	if service {
		entries = asService(entries)
	}
	if limit >= 0 && limit < len(entries) {
		entries = entries[:limit]
	}

	r := backend.NewJournalReplayer(base)
	for i, e := range entries {
		at = i
		if err := r.Add(e); err != nil {
			return fail(err)
		}
	}
	at = -1
	typed, err := r.GenerateDeployment()
	if err != nil {
		return fail(err)
	}
	if err := snapshot.VerifyIntegrity(typed.Deployment); err != nil {
		ans.Integrity = err.Error()
	}
	ans.Version = typed.Version
	ans.Features = typed.Features
	ans.Deployment, err = canonical(typed.Deployment)
	if err != nil {
		return fail(err)
	}
	return ans
}

// canonical drops the manifest (the time is the clock's, the version that of
// the replaying program) and sorts pending operations (the real order is that
// of a Go map, so it has no meaning). Object keys come out sorted.
func canonical(d *apitype.DeploymentV3) (json.RawMessage, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	delete(tree, "manifest")
	if ops, ok := tree["pending_operations"].([]any); ok {
		key := func(v any) string { b, _ := json.Marshal(v); return string(b) }
		slices.SortFunc(ops, func(a, b any) int {
			return bytes.Compare([]byte(key(a)), []byte(key(b)))
		})
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(tree); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// suspects looks for references to resources that do not exist.
// And it looks for entries whose references drifted.
func suspects(c Case, service bool) (out, drifted []string) {
	base, err := decodeBase(c.Base)
	if err != nil {
		return nil, nil
	}
	entries, err := decodeEntries(c.Entries)
	if err != nil {
		return nil, nil
	}
	if service {
		entries = asService(entries)
	}
	bases := len(base.Resources)
	made := map[int64]bool{}
	drift := false
	for i, e := range entries {
		old := func(name string, v *int64) {
			if v != nil && (*v < 0 || *v >= int64(bases)) {
				out = append(out, fmt.Sprintf("entry %d: %s %d is outside a base of %d", i, name, *v, bases))
			}
		}
		fresh := func(name string, v *int64) {
			if v != nil && drift {
				drifted = append(drifted, fmt.Sprintf("entry %d: %s %d", i, name, *v))
			}
			if v != nil && !made[*v] {
				out = append(out, fmt.Sprintf("entry %d: %s %d made no resource", i, name, *v))
			}
		}
		switch e.Kind {
		case apitype.JournalEntryKindSuccess:
			// A success makes its resource before its references are followed.
			if e.State != nil {
				made[e.OperationID] = true
			}
			old("removeOld", e.RemoveOld)
			old("deleteOld", e.DeleteOld)
			old("pendingReplacementOld", e.PendingReplacementOld)
			fresh("removeNew", e.RemoveNew)
			fresh("deleteNew", e.DeleteNew)
			fresh("pendingReplacementNew", e.PendingReplacementNew)
		case apitype.JournalEntryKindRefreshSuccess, apitype.JournalEntryKindOutputs:
			if e.Kind == apitype.JournalEntryKindOutputs && e.State == nil {
				continue
			}
			old("removeOld", e.RemoveOld)
			fresh("removeNew", e.RemoveNew)
		case apitype.JournalEntryKindWrite:
			bases = 0
			if e.NewSnapshot != nil {
				bases = len(e.NewSnapshot.Resources)
			}
		case apitype.JournalEntryKindStateMigration:
			bases = len(e.Layout)
			for _, patch := range e.NewStatePatches {
				fresh("newStatePatches", &patch.OperationID)
			}
		case apitype.JournalEntryKindRebuiltBaseState:
			drift = drift || len(made) > 0
			made = map[int64]bool{}
			var d struct {
				Resources []json.RawMessage `json:"resources"`
			}
			_ = json.Unmarshal(replay(c, service, i+1).Deployment, &d)
			bases = len(d.Resources)
		}
	}
	return out, drifted
}

func answer(c Case, service, prefixes bool) Answer {
	ans := replay(c, service, -1)
	ans.Suspect, ans.Drifted = suspects(c, service)
	if prefixes {
		entries, err := decodeEntries(c.Entries)
		if err == nil {
			if service {
				entries = asService(entries)
			}
			for n := 0; n <= len(entries); n++ {
				p := replay(c, service, n)
				p.Name = ""
				ans.Prefixes = append(ans.Prefixes, p)
			}
		}
	}
	return ans
}

func emit(w io.Writer, v any, pretty bool) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if pretty {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

func input(args []string) (io.ReadCloser, error) {
	if len(args) == 0 || args[0] == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(args[0])
}

// eachInput calls f with every JSON document of the input. With -lines the
// documents come one a line and each answer is flushed at once, so a caller can
// keep the process open as a co-process.
func eachInput(args []string, f func(raw json.RawMessage) error) error {
	in, err := input(args)
	if err != nil {
		return err
	}
	defer in.Close()
	dec := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := f(raw); err != nil {
			return err
		}
	}
}

func cmdReplay(args []string) error {
	fs := flag.NewFlagSet("replay", flag.ExitOnError)
	service := fs.Bool("service", false, "sort entries by sequence ID and drop repeated ones first")
	prefixes := fs.Bool("prefixes", false, "also answer for every prefix of the journal")
	lines := fs.Bool("lines", false, "one answer a line (the default is indented)")
	pretty := fs.Bool("pretty", false, "indent the answers")
	_ = fs.Parse(args)
	return eachInput(fs.Args(), func(raw json.RawMessage) error {
		var c Case
		if err := json.Unmarshal(raw, &c); err != nil {
			return emit(os.Stdout, Answer{At: -1, Error: "decoding case: " + err.Error()}, false)
		}
		return emit(os.Stdout, answer(c, *service, *prefixes), *pretty || !*lines)
	})
}

func cmdGen(args []string) error {
	fs := flag.NewFlagSet("gen", flag.ExitOnError)
	seed := fs.Uint64("seed", 1, "seed; the same seed gives the same cases")
	n := fs.Int("n", 10, "how many cases")
	profile := fs.String("profile", "engine", "engine: journals a CLI could send; wild: anything that decodes")
	expect := fs.Bool("expect", false, "add the oracle's answer to each case as \"expect\"")
	_ = fs.Parse(args)
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	for i := range *n {
		rng := rand.New(rand.NewPCG(*seed, uint64(i)))
		c, err := generate(rng, *profile)
		if err != nil {
			return err
		}
		c.Name = fmt.Sprintf("%s-%d-%d", *profile, *seed, i)
		if !*expect {
			if err := emit(w, c, false); err != nil {
				return err
			}
			continue
		}
		err = emit(w, struct {
			Case
			Expect Answer `json:"expect"`
		}{c, answer(c, true, false)}, false)
		if err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: replay-oracle replay|gen|engine|delta|rename|tags [flags] [FILE]")
		os.Exit(2)
	}
	var err error
	switch os.Args[1] {
	case "replay":
		err = cmdReplay(os.Args[2:])
	case "gen":
		err = cmdGen(os.Args[2:])
	case "engine":
		err = cmdEngine(os.Args[2:])
	case "delta":
		err = cmdDelta(os.Args[2:])
	case "rename":
		err = cmdRename(os.Args[2:])
	case "tags":
		err = cmdTags(os.Args[2:])
	default:
		err = fmt.Errorf("unknown command %q", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "replay-oracle:", err)
		os.Exit(1)
	}
}
