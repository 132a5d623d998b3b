// The text of /proc/PID/stat, for everybody who reads it.

/** USER_HZ, in which it counts time: 100 on every architecture that Linux has today, whatever the kernel's own ticks are. */
export const TICKS_PER_SECOND = 100

/** Its fields from the third of proc(5) on, the state. The second is the command's name in brackets and may contain anything, brackets and spaces too. */
export function statFields (text: string): readonly string[] {
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}
