// Puts the image's metadata and the caller's overrides together, as docker does.
import type { GuestNetwork, Workload } from '../guest/contract.ts'
import type { Image } from '../images/contract.ts'
import { NothingToRun } from './errors.ts'
import { kernelHeadersOf } from './kernel-headers.ts'
import type { InstanceRecord, InstanceSpec } from './record.ts'
import { mountsOf } from './volumes/spec.ts'

/**
 * Entrypoint and cmd as one list. An overridden entrypoint drops the image's cmd, which was meant as arguments of the
 * image's own entrypoint. @throws when nothing is left to run
 */
export function argvOf (spec: Pick<InstanceSpec, 'cmd' | 'entrypoint'>, image: Pick<Image, 'name' | 'cmd' | 'entrypoint'>): readonly string[] {
  const entrypoint = spec.entrypoint ?? image.entrypoint ?? []
  const cmd = spec.cmd ?? (spec.entrypoint === undefined ? image.cmd ?? [] : [])
  const argv = [...entrypoint, ...cmd]
  if (argv.length === 0 || argv[0] === '') throw NothingToRun(image.name)
  return argv
}

/** The environment of the program and of every exec. */
export function environmentOf (spec: Pick<InstanceSpec, 'env'>, image: Pick<Image, 'env'>): Readonly<Record<string, string>> {
  return { ...image.env, ...spec.env }
}

/** What the guest is told to run. */
export function workloadOf (record: InstanceRecord, image: Image, network: GuestNetwork | undefined): Workload {
  return {
    argv: argvOf(record.spec, image),
    env: environmentOf(record.spec, image),
    cwd: image.workingDir === undefined || image.workingDir === '' ? '/' : image.workingDir,
    user: image.user ?? '',
    hostname: record.name,
    mounts: mountsOf(record),
    ...kernelHeadersOf(record.spec),
    ...(network === undefined ? {} : { network }),
    agent: !record.spec.skipGuestAgent
  }
}
