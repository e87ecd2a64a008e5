// Package opaque has a pointer that is printed as an address, and no more.
//
// Package fmt calls no methods of unexported fields, and an unfit verb makes it follow a pointer by one step. So a
// Format method hides no secret of a struct inside another one. For this reason the secrets of a public type are behind
// a Ref. It also keeps a printed value from being read while it changes.
package opaque

import "unsafe"

// Ref is a pointer no printer follows: to package reflect it is an unsafe.Pointer. It has the cost of a pointer, is
// compared like one, and keeps its target from being collected. The zero Ref is nil.
type Ref[T any] struct{ p unsafe.Pointer }

// To returns a Ref to the target of p.
func To[T any](p *T) Ref[T] { return Ref[T]{unsafe.Pointer(p)} }

// Get returns the pointer.
func (r Ref[T]) Get() *T { return (*T)(r.p) }
