package group

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// eachNumber calls f for each number in a struct, with the name of its field.
func eachNumber(v reflect.Value, name string, f func(name string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachNumber(v.Field(i), v.Type().Field(i).Name, f)
		}
	case reflect.Array:
		for i := range v.Len() {
			eachNumber(v.Index(i), name, f)
		}
	default:
		f(name, v)
	}
}

// TestAddForgetsNoField: the counts of two groups are added up, of all that Stats has; the longest
// wait is the longer of both.
func TestAddForgetsNoField(t *testing.T) {
	var both, of Stats
	for n, s := range map[int]*Stats{1: &both, 2: &of} {
		eachNumber(reflect.ValueOf(s).Elem(), "", func(_ string, v reflect.Value) {
			v.Set(reflect.ValueOf(n).Convert(v.Type()))
		})
	}
	both.Add(of)
	numbers := 0
	eachNumber(reflect.ValueOf(both), "", func(name string, v reflect.Value) {
		want := 3
		if name == "Longest" {
			want = 2
		}
		require.EqualValues(t, want, v.Convert(reflect.TypeFor[int]()).Int(), name)
		numbers++
	})
	require.Greater(t, numbers, 50)
}
