package engine

import "time"

// Close refuses new operations, waits up to bound for those that are under way,
// the releases nobody waits for among them, and then fails the rest with
// ErrClosed. It returns when every goroutine of the engine and its fleet has
// ended. It is called once.
func (e *Engine) Close(bound time.Duration) {
	e.queue.close()
	e.closing.Store(true)
	timer := time.NewTimer(bound)
	defer timer.Stop()
	for late := false; !late && !e.isQuiet(); {
		select {
		case <-e.quiet:
		case <-timer.C:
			late = true
		}
	}
	e.role.Lock()
	e.turn(e.fleet.Close)
	close(e.watchdog.stop)
	e.fleet.Drain()
	e.routines.Wait()
}

func (e *Engine) isQuiet() (quiet bool) {
	e.role.Lock()
	e.turn(func() { quiet = e.unsettled == 0 && e.queue.size.Load() == 0 })
	return quiet
}
