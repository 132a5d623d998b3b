// The standard ports of HTTP and HTTPS, and how many more a policy may send through the proxy.

export const HTTP_PORT = 80
export const HTTPS_PORT = 443
/** Most further ports of HTTP, and of HTTPS. */
export const MOST_FURTHER_PORTS = 16
