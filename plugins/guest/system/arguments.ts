// The kernel command line that every VM gets, and why each word is there. README.md has the figures.

const BASE = [
  // The kernel's messages go to the VMM's log. Serial output is slow, so only errors and worse.
  'console=ttyS0', 'quiet',
  // A guest that dies resets at once by a triple fault, on which the VMM ends: no keyboard controller or firmware is involved.
  'panic=-1', 'reboot=t',
  // Self-tests of each cipher at each boot: the largest single piece of a boot under emulation.
  'cryptomgr.notests',
  // Otherwise the kernel rewrites its own locks for one processor, and back when it gets a second one.
  'noreplace-smp'
]

/**
 * Left out on purpose: `no_timer_check` and `tsc=reliable`, promises about the clock that hold only with KVM; `mitigations=off` and
 * `nokaslr`, which gain nothing measurable and are the operator's choice. The driver adds the arguments for an emulated processor.
 */
export function kernelArguments (extra: readonly string[]): readonly string[] {
  return [...BASE, ...extra]
}
