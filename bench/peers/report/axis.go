package report

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
)

// logTicks are ticks on a logarithmic axis: labels at 1, 2 and 5 of each decade
// as far as there is room, lines without a label at the others.
type logTicks struct{ unit func(float64) string }

// Ticks implements [plot.Ticker].
func (t logTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	decades := math.Log10(high / low)
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, e)
			if v < low*0.999 || v > high*1.001 {
				continue
			}
			tick := plot.Tick{Value: v}
			if m == 1 || decades < 3.2 && (m == 2 || m == 5) {
				tick.Label = t.unit(v)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// rate is a number a second.
func rate(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%gk", v/1e3)
	}
	return fmt.Sprintf("%g", v)
}

// micros is a duration, given in microseconds.
func micros(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%g s", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%g ms", v/1e3)
	}
	return fmt.Sprintf("%g µs", v)
}

// logAxis makes an axis logarithmic, around what is on it.
func logAxis(a *plot.Axis, unit func(float64) string) {
	a.Scale = plot.LogScale{}
	a.Tick.Marker = logTicks{unit}
}

// fit leaves some room above and below what is on a logarithmic axis. Of nothing
// at all there is no logarithm.
func fit(a *plot.Axis) {
	if a.Min > a.Max {
		a.Min, a.Max = 1, 10
	}
	const room = 1.25
	a.Min, a.Max = a.Min/room, a.Max*room
}
