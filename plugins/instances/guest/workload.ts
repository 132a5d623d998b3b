// Puts the image's metadata and the caller's overrides together, as docker does.
import type { GuestNetwork, GuestService, Workload } from '../../guest/contract.ts'
import type { Image } from '../../images/contract.ts'
import { NothingToRun } from '../errors.ts'
import { kernelHeadersOf } from './kernel-headers.ts'
import type { InstanceRecord, InstanceSpec } from '../model/record.ts'
import { mountsOf } from '../volumes/spec.ts'

/** Entrypoint and cmd as one list. Each is the caller's where there is one, else the image's; an empty list of the caller also takes the place of the image's. @throws when nothing is left to run */
export function argvOf (spec: Pick<InstanceSpec, 'cmd' | 'entrypoint'>, image: Pick<Image, 'name' | 'cmd' | 'entrypoint'>): readonly string[] {
  const entrypoint = spec.entrypoint ?? image.entrypoint ?? []
  const cmd = spec.cmd ?? image.cmd ?? []
  const argv = [...entrypoint, ...cmd]
  if (argv[0] === undefined || argv[0] === '') throw NothingToRun(image.name)
  return argv
}

/** The environment of the program and of every exec. With mediated egress it has the paths of the authority that programs are to trust, unless the user has set these variables. */
export function environmentOf (spec: Pick<InstanceSpec, 'env' | 'egress'>, image: Pick<Image, 'env'>, guest: Pick<GuestService, 'trustEnvironment'>): Readonly<Record<string, string>> {
  return { ...image.env, ...spec.env, ...(spec.egress === undefined ? {} : guest.trustEnvironment(spec.env, image.env ?? {})) }
}

/** The workload of the guest, without the authority that it is to trust. */
export function workloadOf (record: InstanceRecord, image: Image, network: GuestNetwork | undefined, guest: Pick<GuestService, 'trustEnvironment'>): Workload {
  return {
    argv: argvOf(record.spec, image),
    env: environmentOf(record.spec, image, guest),
    cwd: image.workingDir === undefined || image.workingDir === '' ? '/' : image.workingDir,
    user: image.user ?? '',
    hostname: record.name,
    mounts: mountsOf(record),
    ...kernelHeadersOf(record.spec),
    ...(network === undefined ? {} : { network }),
    agent: !record.spec.skipGuestAgent
  }
}
