// Go's encoding/json: `go struct` reads a message into structs, `go map` into maps.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

type options struct {
	Level *float64 `json:"level"`
}

type arguments struct {
	Cmd     *string  `json:"cmd"`
	Count   *float64 `json:"count"`
	Force   *bool    `json:"force"`
	Options *options `json:"options"`
	Path    *string  `json:"path"`
	Paths   []any    `json:"paths"`
}

type reference struct {
	Name *string `json:"name"`
	URI  *string `json:"uri"`
}

type params struct {
	Name      *string    `json:"name"`
	URI       *string    `json:"uri"`
	Arguments *arguments `json:"arguments"`
	Ref       *reference `json:"ref"`
}

type message struct {
	ID     any     `json:"id"`
	Method *string `json:"method"`
	Params *params `json:"params"`
}

// member returns the pair of a member of an object, or nothing for what is not there.
func member(key string, isThere bool, value func() any) map[string]any {
	if !isThere {
		return nil
	}
	return map[string]any{key: value()}
}

func object(members ...map[string]any) map[string]any {
	all := map[string]any{}
	for _, one := range members {
		for key, value := range one {
			all[key] = value
		}
	}
	return all
}

func (o *options) value() any {
	return object(member("level", o.Level != nil, func() any { return *o.Level }))
}

func (a *arguments) value() any {
	return object(
		member("cmd", a.Cmd != nil, func() any { return *a.Cmd }),
		member("count", a.Count != nil, func() any { return *a.Count }),
		member("force", a.Force != nil, func() any { return *a.Force }),
		member("options", a.Options != nil, func() any { return a.Options.value() }),
		member("path", a.Path != nil, func() any { return *a.Path }),
		member("paths", a.Paths != nil, func() any { return a.Paths }),
	)
}

func (r *reference) value() any {
	return object(
		member("name", r.Name != nil, func() any { return *r.Name }),
		member("uri", r.URI != nil, func() any { return *r.URI }),
	)
}

func (p *params) value() any {
	return object(
		member("name", p.Name != nil, func() any { return *p.Name }),
		member("uri", p.URI != nil, func() any { return *p.URI }),
		member("arguments", p.Arguments != nil, func() any { return p.Arguments.value() }),
		member("ref", p.Ref != nil, func() any { return p.Ref.value() }),
	)
}

func (m *message) value() map[string]any {
	return object(
		member("id", m.ID != nil, func() any { return m.ID }),
		member("method", m.Method != nil, func() any { return *m.Method }),
		member("params", m.Params != nil, func() any { return m.Params.value() }),
	)
}

func described(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return `"` + hex.EncodeToString([]byte(v)) + `"`
	case float64:
		return `["n","` + strconv.FormatFloat(v, 'g', -1, 64) + `"]`
	case []any:
		parts := []string{`"a"`}
		for _, inner := range v {
			parts = append(parts, described(inner))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		parts := []string{`"o"`}
		for key, inner := range v {
			parts = append(parts, "["+described(key)+","+described(inner)+"]")
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	panic("no JSON")
}

func read(way string, line []byte) (map[string]any, error) {
	if way == "map" {
		var whole map[string]any
		err := json.Unmarshal(line, &whole)
		return whole, err
	}
	var whole message
	err := json.Unmarshal(line, &whole)
	return whole.value(), err
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	for {
		text, end := lines.ReadString('\n')
		if end != nil {
			return
		}
		line, err := hex.DecodeString(strings.TrimSpace(text))
		if err != nil {
			panic(err)
		}
		whole, err := read(os.Args[1], line)
		if err != nil {
			fmt.Println("refused")
		} else {
			fmt.Println(described(whole))
		}
	}
}
