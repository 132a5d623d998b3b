// Turns what skopeo, umoci, mkfs.erofs and the kernel say into a sentence that a person understands.
import { hasCode } from '../../core/errors/system-code.ts'
import { BerthError } from '../../core/errors/define.ts'
import { HostCommandFailed, HostCommandMissing } from '../../core/process/errors.ts'
import { ManifestNotFound, RateLimited } from './errors.ts'

export type FailureReason =
  'not-found' | 'rate-limited' | 'login-refused' | 'unreachable' | 'certificate' | 'plain-http' | 'disk-full' | 'corrupt' |
  'unsupported' | 'wrong-platform' | 'not-an-image' | 'timeout' | 'tool'

/** Why a pull failed. The message is shown to users. */
export class PullFailure extends Error {
  override readonly name = 'PullFailure'
  readonly reason: FailureReason

  constructor (reason: FailureReason, message: string, cause?: unknown) {
    super(message, { cause })
    this.reason = reason
  }
}

// Asked in this order: a refused layer also says "error reading", a missing tag also says "unauthorized" on some registries.
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

const SENTENCES: Readonly<Record<FailureReason, (name: string) => string>> = {
  'not-found': (name) => `${name} does not exist in its registry`,
  'rate-limited': (name) => `the registry of ${name} limits how often this host may ask; try later or use a login`,
  'login-refused': (name) => `the registry of ${name} refused the login, or needs one`,
  unreachable: (name) => `the registry of ${name} cannot be reached`,
  certificate: (name) => `the certificate of the registry of ${name} is not trusted`,
  'plain-http': (name) => `the registry of ${name} speaks plain HTTP; list its host under insecureRegistries to allow that`,
  'disk-full': () => 'the disk of the data folder is full',
  corrupt: (name) => `a part of ${name} is corrupt: its content is not what its digest promises, or cannot be unpacked`,
  unsupported: (name) => `${name} has a format that is not supported`,
  'wrong-platform': (name) => `${name} is made for another platform`,
  'not-an-image': (name) => `${name} is not a container image`,
  timeout: (name) => `the pull of ${name} took too long`,
  tool: (name) => `${name} could not be pulled`
}

/** The failure behind whatever was thrown while `name` was pulled. */
export function explain (error: unknown, name: string): PullFailure {
  if (error instanceof PullFailure) return error
  if (error instanceof HostCommandFailed) {
    const line = lastWord(error.failure.stderr)
    const reason = error.failure.reason === 'timeout' ? 'timeout' : reasonOf(error.failure.stderr)
    return new PullFailure(reason, [SENTENCES[reason](name), ...line === '' ? [] : [`(${line})`]].join(' '), error)
  }
  if (HostCommandMissing.is(error)) return new PullFailure('tool', error.message, error)
  if (error instanceof BerthError) return new PullFailure('tool', error.message, error)
  if (hasCode(error, 'ENOSPC', 'EDQUOT')) {
    return new PullFailure('disk-full', SENTENCES['disk-full'](name), error)
  }
  // Not foreseen: the cause goes to the log, not to the user.
  return new PullFailure('tool', SENTENCES.tool(name), error)
}

/** The answer for a caller who still waits, when the failure has a status of its own. */
export function asAnswer (failure: PullFailure, name: string): BerthError | undefined {
  if (failure.reason === 'not-found') return ManifestNotFound.from(failure, name)
  if (failure.reason === 'rate-limited') return RateLimited.from(failure, name)
  return failure.cause instanceof BerthError && failure.cause.kind === 'not-found' ? failure.cause : undefined
}

/** What is wrong, from a tool's own words. */
export function reasonOf (stderr: string): FailureReason {
  return SIGNS.find(([, sign]) => sign.test(stderr))?.[0] ?? 'tool'
}

const MAX_WORD_LENGTH = 300

// skopeo writes `time="…" level=fatal msg="…"`, umoci `⨯ …` or `… error   …`; the last line is the one that ended it.
function lastWord (stderr: string): string {
  const line = stderr.split('\n').map((text) => text.trim()).filter((text) => text !== '').at(-1) ?? ''
  const message = /msg="((?:[^"\\]|\\.)*)"/.exec(line)?.[1]?.replaceAll('\\"', '"') ?? line
  // the server's own folders are nobody's business
  const plain = message.replace(/^[⨯•\s]+/u, '').replaceAll(/[^\s"':]*\/images\/tmp-[^/\s]+\//g, '')
  return plain.length > MAX_WORD_LENGTH ? `${plain.slice(0, MAX_WORD_LENGTH)}…` : plain
}
