package client

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/client/group"
)

// TestOptionsStay: each option of With stays in clients made by another With, and gives way to an option there.
func TestOptionsStay(t *testing.T) {
	g, fields := &site{Group: new(group.Group)}, reflect.TypeFor[Options]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		option := func(n int) (o Options, v any) {
			field := reflect.ValueOf(&o).Elem().Field(i)
			switch field.Kind() {
			case reflect.String:
				field.SetString("order-" + string(rune('0'+n)))
			case reflect.Bool:
				field.SetBool(true)
			default:
				field.SetInt(int64(n))
			}
			return o, field.Interface()
		}
		of := func(s settings) any { return reflect.ValueOf(s.Options).Field(i).Interface() }
		first, one := option(1)
		second, other := option(2)
		var none settings
		set := none.with(first, g)
		require.NoError(t, set.err, name)
		kept := set.with(Options{}, g)
		require.Equal(t, one, of(kept), "option %s is lost: settings.with has no line that merges it", name)
		require.Equal(t, other, of(kept.with(second, g)), "option %s does not give way to another: see settings.with", name)
	}
}
