// The ways in which the proxy stands between a VM and the world.

/** `all`: nothing goes out but through the proxy, and DNS answers are synthetic, so that names carry nothing out. `http_https_only`: HTTP and TLS; DNS goes to a real resolver. */
export const MEDIATED_MODES = ['all', 'http_https_only'] as const

export type MediatedMode = typeof MEDIATED_MODES[number]
