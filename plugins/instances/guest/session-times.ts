// How long a session with a guest waits for what.

/** A guest that has said `exited` powers off by itself; one that does not is ended after this time. */
export const EXIT_GRACE_MS = 10_000
export const FIRST_RETRY_MS = 100
export const LAST_RETRY_MS = 5000
/** It is told of the end of a hush. */
export const HUSH_LOOK_MS = 60_000
