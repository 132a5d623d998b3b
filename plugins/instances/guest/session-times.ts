// The times of a session with a guest.

/** A guest that has said `exited` powers off by itself; one that does not is ended after this time. */
export const EXIT_GRACE_MS = 10_000
export const FIRST_RETRY_MS = 100
export const LAST_RETRY_MS = 5000
/** A hushed session looks at this interval whether it may speak; it is also told at once. */
export const HUSH_LOOK_MS = 60_000
