package e2e

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestTypesAreDefinedHere: an alias of a type of another package hides its fields in the
// documentation of this one. So does a field of a type of an internal package.
func TestTypesAreDefinedHere(t *testing.T) {
	here := reflect.TypeFor[redlock.Client]().PkgPath()
	for _, typ := range []reflect.Type{
		reflect.TypeFor[redlock.Config](), reflect.TypeFor[redlock.Hooks](), reflect.TypeFor[redlock.Lock](),
		reflect.TypeFor[redlock.Node](), reflect.TypeFor[redlock.Stats](),
		reflect.TypeFor[redlock.Attempt](), reflect.TypeFor[redlock.Vote](),
		reflect.TypeFor[redlock.Outcome](), reflect.TypeFor[redlock.OpKind](), reflect.TypeFor[redlock.Op](),
		reflect.TypeFor[redlock.NodeError](), reflect.TypeFor[redlock.QuorumError](), reflect.TypeFor[redlock.AcquireError](),
		reflect.TypeFor[redlock.Acquisition](), reflect.TypeFor[redlock.Retry](),
	} {
		require.Equal(t, here, typ.PkgPath(), typ)
		if typ.Kind() != reflect.Struct {
			continue
		}
		for _, f := range reflect.VisibleFields(typ) {
			if f.IsExported() {
				require.NotContains(t, f.Type.PkgPath(), "internal/", "%v.%s", typ, f.Name)
				require.NotContains(t, f.Type.PkgPath(), here+"/", "%v.%s", typ, f.Name)
			}
		}
	}
}

// TestNamesOfKindsAndOutcomes: they end up in the metrics of users. The texts come from the
// packages below, so this also compares the numbers with theirs.
func TestNamesOfKindsAndOutcomes(t *testing.T) {
	for want, k := range map[string]redlock.OpKind{
		"none": 0, "acquire": redlock.OpAcquire, "extend": redlock.OpExtend, "release": redlock.OpRelease, "unknown": 4,
	} {
		require.Equal(t, want, k.String())
	}
	for want, o := range map[string]redlock.Outcome{
		"granted": redlock.Granted, "denied": redlock.Denied, "failed": redlock.Failed, "outcome(0)": 0,
	} {
		require.Equal(t, want, o.String())
	}
}

// TestNodeAsJSON: a publisher of Nodes gets the cause and the commands as texts.
func TestNodeAsJSON(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 1)
		r.Servers[0].Down()
		testkit.Await(t, "down", func() bool { return !r.Stats().Nodes[0].Up })
		n := r.Stats().Nodes[0]
		var why *conn.Error
		require.True(t, errors.As(n.Err, &why))
		text, err := json.Marshal(n)
		require.NoError(t, err)
		var got map[string]any
		require.NoError(t, json.Unmarshal(text, &got))
		require.Equal(t, why.Error(), got["Err"])
		require.Equal(t, "EVALSHA", got["Dialect"])
	})
}
