// The kernel command line that every VM gets, and why each word is there. README.md has the figures.

const BASE = [
  // What the kernel prints goes to the VMM's log. Serial output is slow, so only errors and worse.
  'console=ttyS0', 'quiet',
  // A guest that dies resets at once by a triple fault, which the VMM takes for its end: no keyboard controller or firmware is asked.
  'panic=-1', 'reboot=t',
  // Self-tests of each cipher at each boot: the largest single piece of a boot under emulation.
  'cryptomgr.notests',
  // Keeps the kernel from rewriting its own locks for one processor, and back when it gets a second one.
  'noreplace-smp'
]

/**
 * Left out on purpose: `no_timer_check` and `tsc=reliable`, promises about the clock that hold only with KVM; `mitigations=off` and
 * `nokaslr`, which gain nothing measurable and are the operator's choice. What an emulated processor needs, its driver adds.
 */
export function kernelArguments (extra: readonly string[]): readonly string[] {
  return [...BASE, ...extra]
}
