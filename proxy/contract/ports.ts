// Ports that guests mean when they reach out, as far as they are the same everywhere.

export const HTTP_PORT = 80
export const HTTPS_PORT = 443
/** Most ports of one kind, beside these. */
export const MOST_FURTHER_PORTS = 16
