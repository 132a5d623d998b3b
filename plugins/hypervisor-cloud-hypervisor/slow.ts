// Requests that Cloud Hypervisor serves no other beside.

/** Does one request that takes long. */
export type Slow = (path: string, body?: object) => Promise<void>
