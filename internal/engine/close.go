package engine

import "time"

// drainFor is how long Close waits for goroutines to end. Only those take longer
// that user code keeps: a callback that blocks, a dialer that does not heed its
// context, a connection whose Close does not end its Read.
const drainFor = 500 * time.Millisecond

// Close refuses new operations, waits up to bound for those that are under way,
// cleanups among them, and then fails the rest with ErrClosed. It returns when
// every goroutine of the engine and its fleet has ended, or after drainFor. It is
// called once.
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
	ended := make(chan struct{})
	go func() {
		e.fleet.Drain()
		e.routines.Wait()
		close(ended)
	}()
	timer.Reset(drainFor)
	select {
	case <-ended:
	case <-timer.C:
	}
}

func (e *Engine) isQuiet() (quiet bool) {
	e.role.Lock()
	e.turn(func() { quiet = e.unsettled == 0 && e.queue.size.Load() == 0 })
	return quiet
}
