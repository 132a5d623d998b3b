// The environment variables by which programs find the authorities that berth-init has put into a guest.

/** a bundle: the image's own authorities, or those it was given, and the egress authority; the same path in every image */
export const GUEST_BUNDLE = '/etc/ssl/certs/berth-ca-bundle.crt'
/** the certificate of the egress authority alone */
export const GUEST_CERTIFICATE = '/usr/local/share/ca-certificates/berth-egress.crt'

/** These replace what a program trusts by itself, so they need a whole bundle. */
const REPLACING = [
  // OpenSSL and all that asks it (Python, Ruby, PHP, …), Go, rustls-native-certs, uv
  'SSL_CERT_FILE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  // Python: requests, pip, httplib2
  'REQUESTS_CA_BUNDLE', 'PIP_CERT', 'HTTPLIB2_CA_CERTS',
  'AWS_CA_BUNDLE',
  'CARGO_HTTP_CAINFO',
  // gRPC's core, with its languages, has roots of its own
  'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
  'NIX_SSL_CERT_FILE'
] as const

/** These are added to what a program trusts; 150 certificates more at each start of Node would cost for nothing. */
const ADDING = ['NODE_EXTRA_CA_CERTS', 'DENO_CERT'] as const

/** Those of the variables that `env`, what the user has set, does not say already, in any way. */
export function trustEnvironment (env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const all = [...REPLACING.map((name) => [name, GUEST_BUNDLE] as const), ...ADDING.map((name) => [name, GUEST_CERTIFICATE] as const)]
  return Object.fromEntries(all.filter(([name]) => !Object.hasOwn(env, name)))
}
