package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// phase is a phase in a server's life. Each follows the one before it. Only leave and drain begin one.
type phase int32

const (
	working  phase = iota
	leaving        // asked to end: it still accepts and answers, and is not ready
	draining       // the listener is closed, and commands under way are answered
)

// life decides when a server reads its files again, and when it ends.
type life struct {
	phase   atomic.Int32
	signals chan os.Signal
	reload  chan struct{}
	asked   chan struct{} // closed by the first signal to end
	cut     chan struct{} // closed by the second
	over    chan struct{}
}

// live takes the signals of the process until close. A write to a closed pipe, such as the log's, is no more than an
// error of this write. For that SIGPIPE is taken, not ignored, so programs started by this one get it as usual.
func live() *life {
	l := &life{
		signals: make(chan os.Signal, 16), reload: make(chan struct{}, 1),
		asked: make(chan struct{}), cut: make(chan struct{}), over: make(chan struct{}),
	}
	signal.Notify(l.signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE)
	go l.listen()
	return l
}

func (l *life) close() {
	signal.Stop(l.signals)
	close(l.over)
}

// listen never waits for the effect of a signal: the second signal to end must be heard while a reload hangs.
func (l *life) listen() {
	ends := []chan struct{}{l.asked, l.cut}
	for {
		select {
		case <-l.over:
			return
		case s := <-l.signals:
			switch s {
			case syscall.SIGHUP:
				select {
				case l.reload <- struct{}{}:
				default: // another is due, and has not begun
				}
			case syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT:
				if len(ends) > 0 {
					close(ends[0])
					ends = ends[1:]
				}
			}
		}
	}
}

// in reports the phase.
func (l *life) in() phase { return phase(l.phase.Load()) }

// wait returns when the server has failed or is asked to end, by a signal or by ctx. It reloads meanwhile.
func (l *life) wait(ctx context.Context, failed <-chan error, reload func()) error {
	for {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		case <-l.asked:
			return nil
		case <-l.reload:
			reload()
		}
	}
}

// leave makes the server report itself as not ready for so long, while it still serves. A second signal ends this phase
// early.
func (l *life) leave(long time.Duration, failed <-chan error) {
	l.phase.Store(int32(leaving))
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-failed:
	case <-l.cut:
	}
}

// drain begins the last phase. Its context ends after so long, or at once at a second signal.
func (l *life) drain(long time.Duration) (context.Context, context.CancelFunc) {
	l.phase.Store(int32(draining))
	ctx, cancel := context.WithTimeout(context.Background(), long)
	go func() {
		select {
		case <-l.cut:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
