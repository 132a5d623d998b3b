// The environment variables by which programs find the authorities that berth-init has put into a guest.

/** a bundle: the image's own authorities, or those it was given, and the egress authority; the same path in every image */
export const GUEST_BUNDLE = '/etc/ssl/certs/berth-ca-bundle.crt'
/** the certificate of the egress authority alone */
export const GUEST_CERTIFICATE = '/usr/local/share/ca-certificates/berth-egress.crt'
/** the same authorities as the bundle, as Java reads them */
export const GUEST_JAVA_STORE = '/etc/ssl/berth-ca-bundle.jks'

/** These replace the authorities that a program trusts by default, so they need a complete bundle. */
const REPLACING = [
  // OpenSSL and programs that use it (Python, Ruby, PHP, …), Go, rustls-native-certs, uv
  'SSL_CERT_FILE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  // Python: requests, pip, httplib2
  'REQUESTS_CA_BUNDLE', 'PIP_CERT', 'HTTPLIB2_CA_CERTS',
  'AWS_CA_BUNDLE',
  'CARGO_HTTP_CAINFO',
  // gRPC's core, for all its languages, has roots of its own
  'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
  'NIX_SSL_CERT_FILE'
] as const

/** These add to the authorities that a program trusts; 150 more certificates at each start of Node would be a useless cost. */
const ADDING = ['NODE_EXTRA_CA_CERTS', 'DENO_CERT'] as const

/** Options for every Java machine, whoever starts it. When an option is given twice, the later one counts. */
const JAVA_OPTIONS = 'JAVA_TOOL_OPTIONS'
const JAVA_TRUST = '-Djavax.net.ssl.trustStore'

/**
 * The variables to set in addition to those of an image and of the user, `env`: all that the user does not set already, in any way. Java has its options in one
 * variable: ours follow the image's and precede the user's.
 */
export function trustEnvironment (env: Readonly<Record<string, string>>, image: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const all = [...REPLACING.map((name) => [name, GUEST_BUNDLE] as const), ...ADDING.map((name) => [name, GUEST_CERTIFICATE] as const)]
  return { ...Object.fromEntries(all.filter(([name]) => !Object.hasOwn(env, name))), ...javaEnvironment(env[JAVA_OPTIONS], image[JAVA_OPTIONS]) }
}

function javaEnvironment (user: string | undefined, image = ''): Readonly<Record<string, string>> {
  if (user === '' || user?.includes(JAVA_TRUST) === true) return {}
  const ours = `${JAVA_TRUST}=${GUEST_JAVA_STORE}`
  return { [JAVA_OPTIONS]: user === undefined ? `${image} ${ours}`.trim() : `${ours} ${user}` }
}
