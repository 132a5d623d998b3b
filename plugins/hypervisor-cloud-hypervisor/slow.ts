// Requests during which Cloud Hypervisor serves no other.

/** Does one request that takes long. */
export type Slow = (path: string, body?: object) => Promise<void>
