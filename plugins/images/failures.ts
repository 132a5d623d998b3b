// Turns errors of skopeo, umoci, mkfs.erofs and the kernel into sentences for people.
import { BerthError } from '../../core/errors/define.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { lastWord, reasonOf, REGISTRY_SENTENCES, RegistryFailure, type FailureReason } from '../../core/library/oci/failures.ts'
import { HostCommandFailed, HostCommandMissing } from '../../core/process/errors.ts'
import { ManifestNotFound, RateLimited } from './errors.ts'

/** Why a pull failed. The message is shown to users. */
export class PullFailure extends RegistryFailure {
  override readonly name = 'PullFailure'
}

const SENTENCES: Readonly<Record<FailureReason, (name: string) => string>> = {
  ...REGISTRY_SENTENCES,
  'plain-http': (name) => `the registry of ${name} speaks plain HTTP; list its host under insecureRegistries to allow that`,
  'disk-full': () => 'the disk of the data folder is full',
  corrupt: (name) => `a part of ${name} is corrupt: its content is not what its digest promises, or cannot be unpacked`,
  unsupported: (name) => `${name} has a format that is not supported`,
  'wrong-platform': (name) => `${name} is made for another platform`,
  'not-an-image': (name) => `${name} is not a container image`,
  timeout: (name) => `the pull of ${name} took too long`,
  tool: (name) => `${name} could not be pulled`
}

/** The failure for an error during the pull of `name`. */
export function explain (error: unknown, name: string): PullFailure {
  if (error instanceof PullFailure) return error
  if (error instanceof HostCommandFailed) {
    const reason = error.failure.reason === 'timeout' ? 'timeout' : reasonOf(error.failure.stderr)
    return new PullFailure(reason, SENTENCES[reason](name) + lastWord(error.failure.stderr), error)
  }
  if (HostCommandMissing.is(error)) return new PullFailure('tool', error.message, error)
  if (error instanceof BerthError) return new PullFailure('tool', error.message, error)
  if (hasCode(error, 'ENOSPC', 'EDQUOT')) {
    return new PullFailure('disk-full', SENTENCES['disk-full'](name), error)
  }
  // Unexpected: the cause goes to the log, not to the user.
  return new PullFailure('tool', SENTENCES.tool(name), error)
}

/** The error for a caller who still waits, when the failure has a status of its own. */
export function asAnswer (failure: PullFailure, name: string): BerthError | undefined {
  if (failure.reason === 'not-found') return ManifestNotFound.from(failure, name)
  if (failure.reason === 'rate-limited') return RateLimited.from(failure, name)
  return failure.cause instanceof BerthError && failure.cause.kind === 'not-found' ? failure.cause : undefined
}
