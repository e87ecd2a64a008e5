package host

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// device is the name of each host's network device. It is a TUN: the wire between the hosts is in this process, so
// that it can do to packets what netem cannot, and so that a kernel without netem is enough.
const device = "wire"

// build makes the namespace of this thread and what is in it.
func (h *Host) build() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("no network namespace, which takes root: %w", err)
	}
	tun, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("no TUN device: /dev/net/tun: %w", err)
	}
	r, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(tun, unix.TUNSETIFF, r); err != nil {
		return fmt.Errorf("no TUN device: %w", err)
	}
	h.Device = os.NewFile(uintptr(tun), device)
	if h.socket, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	if err := h.address(); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if err := h.up("lo", true); err != nil {
		return err
	}
	return h.up(device, true)
}

// address gives the device its address, in a network of 256.
func (h *Host) address() error {
	if err := h.set(unix.SIOCSIFADDR, Address(h.Number)); err != nil {
		return err
	}
	return h.set(unix.SIOCSIFNETMASK, "255.255.255.0")
}

func (h *Host) set(request uint, text string) error {
	r, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	if err := r.SetInet4Addr(netip.MustParseAddr(text).AsSlice()); err != nil {
		return err
	}
	return unix.IoctlIfreq(h.socket, request, r)
}

// Link sets the link of the host up or down.
func (h *Host) Link(up bool) error { return h.up(device, up) }

func (h *Host) up(name string, up bool) error {
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(h.socket, unix.SIOCGIFFLAGS, r); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	flags := r.Uint16() &^ unix.IFF_UP
	if up {
		flags |= unix.IFF_UP
	}
	r.SetUint16(flags)
	if err := unix.IoctlIfreq(h.socket, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
