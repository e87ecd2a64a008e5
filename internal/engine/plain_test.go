package engine

import (
	"time"

	"github.com/redlock-go/redlock/conn"
)

// plain is what a Fleet is like whose nodes know scripts only and never restart.
type plain struct{}

func (plain) Forms() []conn.Form     { return nil }
func (plain) Form(int) conn.Form     { return conn.Form(0) }
func (plain) SetForm(int, conn.Form) {}
func (plain) Wake()                  {}
func (plain) Quarantined() uint64    { return 0 }
func (plain) Away() uint64           { return 0 }
func (plain) Fault(int) error        { return nil }
func (plain) NoteTTL(time.Duration)  {}

// enqueue is Submit without the drive behind it.
func (e *Engine) enqueue(op *Op) error { return e.enqueueAt(op, e.clock.Now()) }
