/** The longest time that a timer of Node can hold. One that is set for longer ends at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1
