// Why an image could not be moved between a registry and this host: turns skopeo's messages into sentences that a person understands.

export type FailureReason =
  'not-found' | 'rate-limited' | 'login-refused' | 'unreachable' | 'address-refused' | 'certificate' | 'plain-http' | 'disk-full' | 'corrupt' |
  'unsupported' | 'wrong-platform' | 'not-an-image' | 'timeout' | 'tool'

/** The message is shown to users. */
export class RegistryFailure extends Error {
  override readonly name: string = 'RegistryFailure'
  readonly reason: FailureReason

  constructor (reason: FailureReason, message: string, cause?: unknown) {
    super(message, { cause })
    this.reason = reason
  }
}

// The order matters: the message of a refused layer also says "error reading", and a missing tag also says "unauthorized" on some registries.
const SIGNS: ReadonlyArray<readonly [FailureReason, RegExp]> = [
  ['disk-full', /no space left on device|disk quota exceeded|ENOSPC|EDQUOT/i],
  ['rate-limited', /toomanyrequests|too many requests|rate limit|status(?: code)?:? 429/i],
  ['login-refused', /unauthorized|authentication required|access to the resource is denied|invalid username\/password|denied:|status(?: code)?:? (?:401|403)|forbidden/i],
  ['not-found', /manifest unknown|name unknown|manifest_unknown|name_unknown|repository name not known|not found: manifest|status(?: code)?:? 404|manifest .* not found/i],
  ['corrupt', /digest did not match|digests? (?:mismatch|does not match)|does not match (?:the )?(?:expected|manifest)|unexpected EOF|invalid checksum|invalid header|flate:|gzip:|archive\/tar|corrupt/i],
  ['plain-http', /server gave HTTP response to HTTPS client|first record does not look like a TLS handshake/i],
  ['certificate', /x509:|certificate/i],
  ['unreachable', /no such host|connection refused|network is unreachable|no route to host|i\/o timeout|connection reset|dial tcp|TLS handshake timeout|server misbehaving|pinging container registry/i]
]

/** The reason, found in a tool's own words. */
export function reasonOf (stderr: string): FailureReason {
  return SIGNS.find(([, sign]) => sign.test(stderr))?.[0] ?? 'tool'
}

type Sentences = Readonly<Record<'not-found' | 'rate-limited' | 'login-refused' | 'unreachable' | 'address-refused' | 'certificate', (name: string) => string>>

/** The reasons for which a registry may refuse to be read from or written to. */
export const REGISTRY_SENTENCES: Sentences = {
  'not-found': (name) => `${name} does not exist in its registry`,
  'rate-limited': (name) => `the registry of ${name} limits how often this host may ask; try later or use a login`,
  'login-refused': (name) => `the registry of ${name} refused the login, or needs one`,
  unreachable: (name) => `the registry of ${name} cannot be reached`,
  'address-refused': (name) => `${name} is at an address that this server does not dial: a private one, its own, or a metadata service`,
  certificate: (name) => `the certificate of the registry of ${name} is not trusted`
}

const MAX_WORD_LENGTH = 300

/** A path without the folder of one piece of work (`tmp-ID`) at its beginning. */
function withoutWorkFolder (path: string): string {
  const folder = [...path.matchAll(/\/tmp-[^/]+\//g)].at(-1)
  return folder === undefined ? path : path.slice(folder.index + folder[0].length)
}

/**
 * The line with which a tool ended: skopeo writes `time="…" level=fatal msg="…"`, umoci `⨯ …` or `… error   …`.
 * @returns it in parentheses with a space before, to be appended to a sentence; empty when there is none
 */
export function lastWord (stderr: string): string {
  const line = stderr.split('\n').map((text) => text.trim()).filter((text) => text !== '').at(-1) ?? ''
  const message = /msg="((?:[^"\\]|\\.)*)"/.exec(line)?.[1]?.replaceAll('\\"', '"') ?? line
  // the paths of the server's own folders are not shown
  const plain = message.replace(/^[⨯•\s]+/u, '').split(/([\s"':])/).map(withoutWorkFolder).join('')
  if (plain === '') return ''
  return ` (${plain.length > MAX_WORD_LENGTH ? `${plain.slice(0, MAX_WORD_LENGTH)}…` : plain})`
}
