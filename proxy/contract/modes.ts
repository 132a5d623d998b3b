// The modes in which a VM's traffic goes through the proxy.

/** `all`: nothing goes out but through the proxy, and DNS answers are synthetic, so that no query leaks data. `http_https_only`: HTTP and TLS go through the proxy, DNS goes to a real resolver. */
export const MEDIATED_MODES = ['all', 'http_https_only'] as const

export type MediatedMode = typeof MEDIATED_MODES[number]
