// Package virtual runs whole clients against fake masters in virtual time: inside a bubble of
// testing/synctest, over a network in memory. Time jumps to the next event as soon as all
// goroutines wait, so an hour of waiting costs a second. It stands still while they work, so delays
// are exact however busy the machine is.
//
// The code under test is the real one, from the root package down to the portable sockets, and so
// is fakeredis. Replaced are the network, the clocks of the clients' machines, and the raw path of
// Linux: a bubble does not know its waits.
//
//   - A [Network] connects hosts. The [Link] between two of them has the delays, and the faults, of
//     each direction.
//   - A [Machine] has the clocks of its clients, and can be suspended.
//   - A [World] is masters, machines, clients, and a network between them.
//
// A seed repeats the random choices here, but not the order of goroutines ready at the same
// instant.
package virtual
