// Package opaque has a pointer that is printed as an address, and no more.
//
// Package fmt calls no methods of unexported fields, and an unfit verb makes it follow a pointer by one step: a Format
// method hides no secret of a struct inside another one. What a public type has of secrets is therefore behind a Ref.
// It also keeps a printed value from being read while it changes.
package opaque

import "unsafe"

// Ref is a pointer that no printer follows: to package reflect it is an unsafe.Pointer. It costs what a pointer costs,
// is compared like one, and keeps its target from being collected. The zero Ref is nil.
type Ref[T any] struct{ p unsafe.Pointer }

// To is a Ref to the target of p.
func To[T any](p *T) Ref[T] { return Ref[T]{unsafe.Pointer(p)} }

// Get is the pointer.
func (r Ref[T]) Get() *T { return (*T)(r.p) }
