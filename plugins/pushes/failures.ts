// Turns errors of a push into sentences for people.
import { BerthError } from '../../core/errors/define.ts'
import { lastWord, reasonOf, REGISTRY_SENTENCES, RegistryFailure, type FailureReason } from '../../core/library/oci/failures.ts'
import { HostCommandFailed } from '../../core/process/errors.ts'

/** Why a push failed. The message is shown to users. */
export class PushFailure extends RegistryFailure {
  override readonly name = 'PushFailure'
}

type Sentences = Readonly<Record<FailureReason, (name: string) => string>>

const TARGET: Sentences = {
  ...REGISTRY_SENTENCES,
  'not-found': (name) => `the registry of ${name} has no such repository, and makes none by itself`,
  certificate: (name) => `${REGISTRY_SENTENCES.certificate(name)}; set insecure to allow that`,
  'plain-http': (name) => `the registry of ${name} speaks plain HTTP; set insecure to allow that`,
  'disk-full': (name) => `there is no space left for ${name}`,
  corrupt: (name) => `the content that the registry of ${name} got is not what its digest promises`,
  unsupported: (name) => `the registry of ${name} does not take the format of this image`,
  'wrong-platform': (name) => `the registry of ${name} does not take images for this platform`,
  'not-an-image': (name) => `the registry of ${name} does not take it for an image`,
  timeout: (name) => `the push to ${name} took too long`,
  tool: (name) => `the image could not be pushed to ${name}`
}

const ORIGIN: Sentences = {
  ...REGISTRY_SENTENCES,
  'not-found': (name) => `${name} is no longer in its registry, and only the files of an image are kept here`,
  'login-refused': (name) => `the registry of ${name} wants a login to read the image; only logins of the server itself (credentialsFile) are used for that`,
  'plain-http': (name) => `the registry of ${name} speaks plain HTTP`,
  'disk-full': () => 'the disk of the data folder is full',
  corrupt: (name) => `a part of ${name} is corrupt: its content is not what its digest promises`,
  unsupported: (name) => `${name} has a format that is not supported`,
  'wrong-platform': (name) => `${name} is made for another platform`,
  'not-an-image': (name) => `${name} is not a container image`,
  timeout: (name) => `reading ${name} took too long`,
  tool: (name) => `${name} could not be read`
}

// skopeo's errors about the source, once it has begun to copy.
const READING = /initializing source|reading (?:blob|manifest|config|signatures)|fetching (?:blob|manifest|target platform image)|parsing image configuration/i

export interface Ends { readonly origin: string, readonly target: string }

/** The failure for an error while an image was read. */
export function explainReading (error: unknown, origin: string): PushFailure {
  return explain(error, ORIGIN, origin)
}

/** The failure for an error while an image was copied. */
export function explainCopy (error: unknown, { origin, target }: Ends): PushFailure {
  const isReading = error instanceof HostCommandFailed && error.failure.reason !== 'timeout' && READING.test(error.failure.stderr)
  return isReading ? explain(error, ORIGIN, origin) : explain(error, TARGET, target)
}

function explain (error: unknown, sentences: Sentences, name: string): PushFailure {
  if (error instanceof PushFailure) return error
  if (error instanceof HostCommandFailed) {
    const reason = error.failure.reason === 'timeout' ? 'timeout' : reasonOf(error.failure.stderr)
    return new PushFailure(reason, sentences[reason](name) + lastWord(error.failure.stderr), error)
  }
  if (error instanceof RegistryFailure) return new PushFailure(error.reason, error.message, error)
  if (error instanceof BerthError) return new PushFailure('tool', error.message, error)
  // Unexpected: the cause goes to the log, not to the user.
  return new PushFailure('tool', sentences.tool(name), error)
}
